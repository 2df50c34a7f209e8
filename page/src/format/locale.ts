// A browser may report a locale that no formatter accepts, such as `en-US@posix`; the chart library uses it when it
// is loaded, so this module is loaded first.
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true });
}
