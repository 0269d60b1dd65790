/* The formats of a report: what the daemon renders, and what profctl offers. Pure. */
#ifndef PROFD_PROTO_REPORT_FORMAT_H
#define PROFD_PROTO_REPORT_FORMAT_H

/* X(name, word, content type, wants_report, lists_rows, functions), in the order of lists of them. word: as users write
 * it. wants_report, lists_rows and functions are fields of struct render_format (render.h).
 *
 * A further format is a row here, and the function NAME_render in a file of daemon/render. Lint then asks for its entry
 * in profctl-report(1) and for its word in schema/openapi.json. Add it also to tests/unit/render/formats.c and
 * tests/integration/formats.py, which try hostile names and a lack of memory. */
#define REPORT_FORMATS(X)                                                                                              \
    X(json, "json", "application/json", true, true, 0)                                                                 \
    X(text, "text", "text/plain; charset=utf-8", true, true, 0)                                                        \
    X(gprof, "gprof", "text/plain; charset=utf-8", false, false, 0)                                                    \
    X(pprof, "pprof", "application/vnd.google.protobuf", true, false, 0)                                               \
    X(otlp, "otlp", "application/x-protobuf", true, false, 0)                                                          \
    X(callgrind, "callgrind", "text/plain; charset=utf-8", true, false, 0)                                             \
    X(folded, "folded", "text/plain; charset=utf-8", true, false, 0)                                                   \
    X(speedscope, "speedscope", "application/json", true, false, 0)                                                    \
    X(dot, "dot", "text/vnd.graphviz; charset=utf-8", true, false, 80)                                                 \
    X(csv, "csv", "text/csv; charset=utf-8; header=present", true, false, 0)                                           \
    X(graph, "graph", "application/json", true, false, 200)                                                            \
    X(tree, "tree", "application/json", true, false, 20000)                                                            \
    X(symbol_order, "symbol-order", "text/plain; charset=utf-8", true, false, 0)                                       \
    X(exclude_list, "exclude-list", "text/plain; charset=utf-8", true, false, 0)

#endif
