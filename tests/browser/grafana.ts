// The types of a Grafana dashboard, by Grafana's own package @grafana/schema: tests/integration/grafana.py appends the
// dashboards, and the TypeScript compiler tells what breaks them. JSON has strings where the package has enums.
import type { AnnotationQuery, Dashboard, DataQuery, FieldConfig, Panel } from "@grafana/schema";
import type {
  FieldConfig as SeriesField,
  Options as TimeSeries,
} from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

type Any<T> = 0 extends 1 & T ? true : false;
type Plain<T> = Any<T> extends true
  ? T
  : T extends string
    ? `${T}`
    : T extends (infer U)[]
      ? Plain<U>[]
      : T extends object
        ? { [K in keyof T]: Plain<T[K]> }
        : T;
/** What is not stated has its default. */
type Some<T> = Any<T> extends true
  ? T
  : T extends string
    ? `${T}`
    : T extends (infer U)[]
      ? Some<U>[]
      : T extends object
        ? { [K in keyof T]?: Some<T[K]> }
        : T;
type Of<Type, Options, Custom> = Plain<Omit<Panel, "type" | "options" | "fieldConfig">> & {
  type: Type;
  options: Some<Options>;
  fieldConfig: {
    defaults: Some<Omit<FieldConfig, "custom">> & { custom?: Some<Custom> };
    overrides: Plain<NonNullable<Panel["fieldConfig"]>["overrides"]>;
  };
};
/** A data source adds fields of its own to a query. */
type Query = Plain<DataQuery> & Record<string, unknown>;

export type File = Plain<Omit<Dashboard, "panels" | "annotations">> & {
  panels: (
    | Of<"timeseries", TimeSeries, SeriesField>
    | Of<"flamegraph", Record<string, never>, never>
  )[];
  annotations: { list: (Plain<Omit<AnnotationQuery, "target">> & { target: Query })[] };
};
