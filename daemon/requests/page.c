#include "requests/page.h"

#include "render/render.h"

#define PAGE_MAX (1u << 20)

void page_init(struct page *page, int status, const char *content_type)
{
    *page = (struct page){.status = status, .content_type = content_type, .cache_control = "no-store", .etag = ""};
    buffer_init(&page->body, PAGE_MAX);
}

void page_problem(struct page *page, int http_status, enum profd_status code, const char *detail)
{
    page_init(page, http_status, "application/problem+json");
    if (http_status == 503) {
        page->retry_after_ms = 1000;
    }
    render_problem(code, http_status, detail, &page->body);
}
