// Theme and language: the host's, else the browser's, until somebody chooses. Nothing is stored: a sandboxed page cannot.
import { closest, setLanguage } from "./i18n.js";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = null;
let chosenLanguage = null;

export const theme = () => chosenTheme ?? window.langbot?.theme ?? (dark.matches ? "dark" : "light");

function paint() {
  const { dataset } = document.documentElement;
  dataset.theme = theme() === "dark" ? "dark" : "light";
  dataset.follows = window.langbot && theme() === window.langbot.theme ? "host" : "none";
}

/** Follow the host; `onLanguage()` is called whenever the words change. */
export function follow(onLanguage) {
  paint();
  const speak = () => setLanguage(chosenLanguage ?? window.langbot?.language ?? closest(navigator.language));
  speak();
  dark.addEventListener("change", paint);
  window.langbot?.onThemeChange?.(paint);
  window.langbot?.onLanguageChange?.(() => {
    if (chosenLanguage) return;
    speak();
    onLanguage();
  });
  return {
    chooseTheme(name) {
      chosenTheme = name;
      paint();
    },
    chooseLanguage(code) {
      chosenLanguage = code;
      speak();
      onLanguage();
    },
    refresh() {
      paint();
      speak();
    },
  };
}
