// Small conveniences. Every page works without them.
(() => {
  "use strict";
  // What scripts do at once needs no button.
  document.documentElement.classList.add("scripted");
  const stale = document.getElementById("stale");
  const lost = () => { if (stale) stale.hidden = false; };
  document.addEventListener("htmx:responseError", lost);
  document.addEventListener("htmx:sendError", lost);
  document.addEventListener("htmx:timeout", lost);
  document.addEventListener("htmx:afterOnLoad", () => { if (stale) stale.hidden = true; });
  document.addEventListener("change", (event) => {
    if (event.target.matches("select[data-submits]")) event.target.form.requestSubmit();
  });
  // "/" goes to the search field; Escape closes the menu.
  document.addEventListener("keydown", (event) => {
    const menu = document.querySelector("details.me[open]");
    if (event.key === "Escape" && menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
    const writing = event.target.closest("input, textarea, select");
    const find = document.getElementById("find");
    if (event.key === "/" && find && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      find.focus();
    }
  });
  document.addEventListener("click", (event) => {
    const menu = document.querySelector("details.me[open]");
    if (menu && !menu.contains(event.target)) menu.open = false;
  });
  // An element with data-events="path" turns server-sent events into "sage:<kind>" events of htmx on itself.
  for (const place of document.querySelectorAll("[data-events]")) {
    const source = new EventSource(place.dataset.events);
    for (const kind of (place.dataset.kinds || "message").split(" ")) {
      source.addEventListener(kind, (event) => window.htmx.trigger(place, "sage:" + kind, JSON.parse(event.data)));
    }
    source.addEventListener("error", lost);
    source.addEventListener("open", () => { if (stale) stale.hidden = true; });
  }
})();
