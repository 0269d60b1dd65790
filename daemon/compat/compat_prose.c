#include "compat/compat_prose.h"

void compat_prose_flat(struct buffer *out)
{
    buffer_add_text(out, "\n"
                         "How to read the flat profile. A line stands for one function; the ones that took\n"
                         "most time come first, then those called most often, then by name.\n"
                         "\n"
                         " % time              share of all ticks that fell into the function itself\n"
                         " cumulative seconds  self seconds of this line and of all lines above\n"
                         " self seconds        time in the function itself, without what it called\n"
                         " calls               calls from other functions; blank where none was counted\n"
                         " self .../call       self time divided by calls, in the unit of the heading\n"
                         " total .../call      the same with the time of what it called\n"
                         " name                the function\n"
                         "\n"
                         "Calls were counted; times were sampled. A call's time is an average over all\n"
                         "callers, and a time of few ticks may be off by as much again.\n"
                         "(End of the flat profile's explanation.)\n");
}

void compat_prose_graph(struct buffer *out)
{
    buffer_add_text(out, "\n"
                         "How to read the call graph. Each entry, between two dashed lines, is about the\n"
                         "function of the line that begins with an index; entries with more time, their\n"
                         "own and that of what they called, come first.\n"
                         "\n"
                         " the entry's line    index; share of all time; own time; time of what it called;\n"
                         "                     calls from others, + calls by itself; name and index\n"
                         " lines above it      its callers: how much of its own time, and of that of what\n"
                         "                     it called, is charged to them; their calls / all calls\n"
                         " lines below it      what it called: the time that this charged to the entry;\n"
                         "                     calls from here / all calls\n"
                         " <spontaneous>       no caller was seen\n"
                         " <cycle N>           functions that call each other in a circle. They share one\n"
                         "                     entry \"as a whole\"; calls among them carry no time\n"
                         " [N], (N)            where the entry stands; round brackets: it is not printed\n"
                         "\n"
                         "Time is charged to callers in proportion to their calls, as if every call had\n"
                         "taken equally long.\n"
                         "(End of the call graph's explanation.)\n");
}

void compat_prose_graph_old(struct buffer *out)
{
    buffer_add_text(out, "\n\n\ncall graph profile:\n");
    compat_prose_graph(out);
}
