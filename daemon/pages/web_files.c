#include "pages/web_files.h"

#include <string.h>

#define HTML "text/html; charset=utf-8"
#define CSS "text/css; charset=utf-8"
#define SVG "image/svg+xml"
#define SCRIPT "text/javascript; charset=utf-8"

/* path, name of the embedded file, type */
#define FILES(X)                                                                                                       \
    X("/", index_html, HTML)                                                                                           \
    X("/style.css", style_css, CSS)                                                                                    \
    X("/icon.svg", icon_svg, SVG)                                                                                      \
    X("/app.js", app_js, SCRIPT)                                                                                       \
    X("/api.js", api_js, SCRIPT)                                                                                       \
    X("/asks.js", asks_js, SCRIPT)                                                                                     \
    X("/choices.js", choices_js, SCRIPT)                                                                               \
    X("/code_instructions.js", code_instructions_js, SCRIPT)                                                           \
    X("/code_lines.js", code_lines_js, SCRIPT)                                                                         \
    X("/compare_flame.js", compare_flame_js, SCRIPT)                                                                   \
    X("/compare_graph.js", compare_graph_js, SCRIPT)                                                                   \
    X("/compare_judge.js", compare_judge_js, SCRIPT)                                                                   \
    X("/compare_sides.js", compare_sides_js, SCRIPT)                                                                   \
    X("/compare_words.js", compare_words_js, SCRIPT)                                                                   \
    X("/dagre.js", dagre_js, SCRIPT)                                                                                   \
    X("/dom.js", dom_js, SCRIPT)                                                                                       \
    X("/early.js", early_js, SCRIPT)                                                                                   \
    X("/flame_draw.js", flame_draw_js, SCRIPT)                                                                         \
    X("/format.js", format_js, SCRIPT)                                                                                 \
    X("/graph_draw.js", graph_draw_js, SCRIPT)                                                                         \
    X("/graph_fold.js", graph_fold_js, SCRIPT)                                                                         \
    X("/graph_layout.js", graph_layout_js, SCRIPT)                                                                     \
    X("/md5.js", md5_js, SCRIPT)                                                                                       \
    X("/menu.js", menu_js, SCRIPT)                                                                                     \
    X("/origin.js", origin_js, SCRIPT)                                                                                 \
    X("/overview_day.js", overview_day_js, SCRIPT)                                                                     \
    X("/overview_change.js", overview_change_js, SCRIPT)                                                               \
    X("/pane_arcs.js", pane_arcs_js, SCRIPT)                                                                           \
    X("/pane_function.js", pane_function_js, SCRIPT)                                                                   \
    X("/picture.js", picture_js, SCRIPT)                                                                               \
    X("/report_columns.js", report_columns_js, SCRIPT)                                                                 \
    X("/series.js", series_js, SCRIPT)                                                                                 \
    X("/share.js", share_js, SCRIPT)                                                                                   \
    X("/stacks.js", stacks_js, SCRIPT)                                                                                 \
    X("/stacks_ask.js", stacks_ask_js, SCRIPT)                                                                         \
    X("/state.js", state_js, SCRIPT)                                                                                   \
    X("/strip.js", strip_js, SCRIPT)                                                                                   \
    X("/table.js", table_js, SCRIPT)                                                                                   \
    X("/theme.js", theme_js, SCRIPT)                                                                                   \
    X("/timeline.js", timeline_js, SCRIPT)                                                                             \
    X("/toolbar.js", toolbar_js, SCRIPT)                                                                               \
    X("/tree_grid.js", tree_grid_js, SCRIPT)                                                                           \
    X("/view_api.js", view_api_js, SCRIPT)                                                                             \
    X("/view_builds.js", view_builds_js, SCRIPT)                                                                       \
    X("/view_code.js", view_code_js, SCRIPT)                                                                           \
    X("/view_compare.js", view_compare_js, SCRIPT)                                                                     \
    X("/view_cycles.js", view_cycles_js, SCRIPT)                                                                       \
    X("/view_flame.js", view_flame_js, SCRIPT)                                                                         \
    X("/view_functions.js", view_functions_js, SCRIPT)                                                                 \
    X("/view_graph.js", view_graph_js, SCRIPT)                                                                         \
    X("/view_hosts.js", view_hosts_js, SCRIPT)                                                                         \
    X("/view_never.js", view_never_js, SCRIPT)                                                                         \
    X("/view_processes.js", view_processes_js, SCRIPT)                                                                 \
    X("/view_report.js", view_report_js, SCRIPT)                                                                       \
    X("/view_tree.js", view_tree_js, SCRIPT)

#define DECLARE(path, name, type)                                                                                      \
    extern const unsigned char embed_daemon_web_##name[];                                                              \
    extern const size_t embed_daemon_web_##name##_size;
FILES(DECLARE)
#undef DECLARE

#define ROW(path, name, type) {path, type, embed_daemon_web_##name, &embed_daemon_web_##name##_size},
static const struct web_file web_files[] = {FILES(ROW)};
#undef ROW

const struct web_file *web_find(const char *path, size_t n)
{
    for (size_t i = 0; i < sizeof web_files / sizeof *web_files; i++) {
        if (strlen(web_files[i].path) == n && memcmp(web_files[i].path, path, n) == 0) {
            return &web_files[i];
        }
    }
    return NULL;
}

const struct web_file *web_list(size_t *count)
{
    *count = sizeof web_files / sizeof *web_files;
    return web_files;
}

bool web_has(const char *path, size_t n)
{
    return web_find(path, n) != NULL;
}
