// Tables and drawings that are wider than the page scroll; the keyboard has to reach them.
const WIDE = '.md-typeset__scrollwrap, .md-typeset p:has(> img[src$=".svg"])';
function reach() {
  for (const one of document.querySelectorAll(WIDE))
    if (!one.hasAttribute("tabindex")) one.tabIndex = 0;
}
reach();
new MutationObserver(reach).observe(document.body, { childList: true, subtree: true });
