/* Why counts are not exact, for exports that can be imported again. */
#ifndef PROFD_RENDER_REASONS_H
#define PROFD_RENDER_REASONS_H

#include "render/render.h"

/* "threads-unknown, caller-bucket", as message_inexact_parse reads it; "none" if all is exact. Ticks inside collectors,
 * which an export has no place for, are left out of it: "ticks-outside". NULL: no memory. */
const char *reasons_list(const struct render_input *in, struct arena *a);

#endif
