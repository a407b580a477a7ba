//! The few pages that the gateway itself shows.

pub(crate) fn link_spent() -> String {
    layout(
        "This link no longer works",
        "<p>A sign-in link works once, within ten minutes, and only the newest one does. \
         Get a fresh one:</p><pre>nacre login</pre>",
    )
}

fn layout(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} · Nacre</title><style>\
         :root{{color-scheme:light dark}}\
         body{{font:1rem/1.6 system-ui,sans-serif;max-width:34rem;margin:18vh auto;padding:0 1.5rem}}\
         h1{{font-size:1.4rem;font-weight:600}}\
         pre{{padding:.8rem 1rem;border-radius:.5rem;background:color-mix(in srgb,currentColor 8%,transparent);\
         white-space:pre-wrap}}\
         </style></head><body><main><h1>{title}</h1>{body}</main></body></html>"
    )
}

pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}
