// What the theme leaves out for keyboards and screen readers: a name for the search, and a focus for
// code that is wider than its box, which the theme gives to devices with a mouse only.
document.querySelector(".md-search").ariaLabel = "Search";
const reach = (each) => { if (each.tabIndex) each.tabIndex = 0; };
const watch = new MutationObserver((changes) => changes.forEach((change) => reach(change.target)));
document.querySelectorAll(".md-typeset pre > code").forEach((each) => {
  reach(each);
  watch.observe(each, { attributeFilter: ["tabindex"] });
});
