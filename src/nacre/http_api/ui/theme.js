// The chosen theme, before anything is drawn. It is no module, because modules run after the first paint may happen.
// Without a choice, the system's theme holds.

(() => {
  const chosen = (() => {
    try {
      return window.localStorage.getItem("nacre.theme");
    } catch {
      return null;
    }
  })();
  if (chosen) document.documentElement.dataset.theme = chosen;
})();
