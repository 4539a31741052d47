// Words of the page. Sentences made by the engine come translated with its answers.
import en_US from "./words/en_US.js";
import zh_Hans from "./words/zh_Hans.js";

const TABLES = { en_US, zh_Hans };
let current = "en_US";

export const languages = Object.keys(TABLES);
export const language = () => current;

/** The table that fits a code such as zh-CN, zh_Hans or en; English for all others. */
export function closest(code) {
  return /^zh/i.test(code ?? "") ? "zh_Hans" : "en_US";
}

export function setLanguage(code) {
  current = closest(code);
  document.documentElement.lang = current === "zh_Hans" ? "zh-Hans" : "en";
  document.title = t("title");
}

/** Words for a key, {name} filled in. With n = 1 the key with `_one` goes first: English needs it. */
export function t(key, values = {}) {
  const table = TABLES[current];
  const words = (values.n === 1 && table[`${key}_one`]) || table[key] || key;
  return words.replace(/\{(\w+)\}/g, (all, name) => {
    const value = values[name];
    return value === undefined ? all : typeof value === "number" ? value.toLocaleString(current.replace("_", "-")) : value;
  });
}

/** Words for a name of the engine's, such as a status; the name itself, made readable, where a newer engine has one more. */
export function label(group, name) {
  const key = `${group}.${name}`;
  return TABLES[current][key] ?? String(name).slice(0, 200).replace(/_/g, " ");
}
