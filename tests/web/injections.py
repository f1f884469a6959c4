"""Texts that want to be carried out by whoever shows them."""

from __future__ import annotations

FORMS = (
    "<script>window.hit=1</script>",
    "</script><script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    '"><svg onload=window.hit=1>',
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    "javascript:window.hit=1",
    "<a href='javascript:window.hit=1'>x</a>",
    "<style>*{background:url(http://127.0.0.1:9/hit)}</style>",
    "<link rel=stylesheet href=http://127.0.0.1:9/hit>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/hit'>",
    "<base href=http://127.0.0.1:9/>",
    "${window.hit=1}",
    "`;window.hit=1;//",
    "'-(window.hit=1)-'",
    "<!--</script><script>window.hit=1</script>-->",
    "<![CDATA[<script>window.hit=1</script>]]>",
    "<math><mtext></mtext><script>window.hit=1</script></math>",
    "<details open ontoggle=window.hit=1>",
    "<input autofocus onfocus=window.hit=1>",
    "<form action=javascript:window.hit=1><button>x</button></form>",
    "\u2028window.hit=1\u2029",
    "{{constructor.constructor('window.hit=1')()}}",
    "<template><script>window.hit=1</script></template>",
    "<object data='data:text/html,<script>parent.hit=1</script>'></object>",
    "__proto__",
    "constructor",
)
# The same inside of what pages and models wrap texts in.
AROUND = ("{}", '"{}"', "'{}'", "`{}`", "<b>{}</b>", "[x]({})", "![x]({})", "```html\n{}\n```")
PAYLOADS = tuple(around.format(form) if around != "{}" else form for around in AROUND for form in FORMS)
