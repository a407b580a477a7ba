
// What to listen to in the page.

addEventListener("error", (event) => {
  if (event.target?.localName === "script" && event.target.type === "module") scriptFailed = true;
  else if (event.message) lastError = [event.message, event.error?.stack].filter(Boolean).join("\n");
  soon();
}, true);
addEventListener("unhandledrejection", ({ reason: why }) => {
  lastError = String(why?.stack ?? why);
  soon();
});
for (const place of [window, document]) {
  place.addEventListener("nacre:trouble", ({ detail }) => {
    const name = nameOf(detail);
    // One that is drawn anew may crash a last time on its way to being well.
    const { shown = false } = crashed.get(name) ?? {};
    crashed.set(name, { message: detail?.message, stack: detail?.stack, shown });
    // Told after a look at the server: a part that could not be loaded from one that restarts is not broken.
    soon(0);
  });
  // Of one part, when it says which. Whether all else is well is looked at, and not taken from the page.
  place.addEventListener("nacre:well", ({ detail }) => {
    const name = nameOf(detail);
    if (name === undefined) crashed.clear();
    else crashed.delete(name);
    tellOfCrashes();
    soon(0);
  });
}
for (const type of ["keydown", "pointerdown"]) addEventListener(type, (event) => { if (!event.composedPath().includes(host)) touched = true; }, true);
document.addEventListener("visibilitychange", () => { if (!document.hidden) { listen(); soon(); } });
addEventListener("online", listen);

const overlays = () => document.querySelectorAll("vite-error-overlay").forEach(takeOverlay);
function watchPage() {
  if (!document.body || watchPage.done) return;
  watchPage.done = true;
  new MutationObserver(overlays).observe(document.body, { childList: true });
  const root = document.getElementById("root");
  if (root) new MutationObserver(() => { if (filled !== !isEmpty() || troubles.has("empty")) soon(); }).observe(root, { childList: true });
  overlays();
}
document.addEventListener("readystatechange", watchPage);
watchPage();
addEventListener("load", () => {
  loaded = true;
  if (lastError || scriptFailed) soon();
  setTimeout(soon, GRACE);
});
if (reason === "starting") document.addEventListener("DOMContentLoaded", () => { if (!panel) renderPill("starting"); });
listen();
