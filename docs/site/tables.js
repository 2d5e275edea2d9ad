// Tables that are wider than the page scroll; the keyboard has to reach them for that.
new MutationObserver(() => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])"))
    table.tabIndex = 0;
}).observe(document.body, { childList: true, subtree: true });
