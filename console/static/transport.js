// How the page reaches the engine: fetch with a session under `ltm serve`, langbot.api inside LangBot.

import { t } from "./i18n.js";

const host = window.langbot ?? null;
export const inLangBot = host !== null;

let session = "";
let unlocking = null;
let askForToken = async () => "";

/** An error that the engine or the way to it answered. `kind` names what sort. */
export class CallError extends Error {
  constructor(kind, message) {
    super(message || kind);
    this.kind = kind;
  }
}

/** Get ready to call. `ask(problem)` shows a form and resolves to what was typed: a token or the whole link. */
export async function connect(ask) {
  askForToken = ask;
  if (inLangBot) return new Promise((resolve) => host.onReady(() => resolve()));
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  addEventListener("hashchange", () => location.hash.includes("token=") && location.reload()); // another link, pasted over this one
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  return unlock(token ?? "");
}

/** Exchange a token for a session, asking until one is taken. One question at a time, however many calls wait for it. */
function unlock(token = "", problem = null) {
  unlocking ??= (async () => {
    while (true) {
      const given = token || tokenIn(await askForToken(problem));
      token = "";
      try {
        session = (await post("session", { token: given })).session;
        return;
      } catch (error) {
        problem = error;
      }
    }
  })().finally(() => {
    unlocking = null;
  });
  return unlocking;
}

const tokenIn = (text) => /token=([^&\s]+)/.exec(text)?.[1] ?? text.trim();

async function answer(endpoint, body) {
  const headers = { "Content-Type": "application/json" };
  if (session) headers.Authorization = `Bearer ${session}`;
  try {
    return await fetch(`api/${endpoint}`, { method: "POST", headers, body: JSON.stringify(body), cache: "no-store" });
  } catch (error) {
    throw new CallError("Unreachable", String(error?.message ?? error));
  }
}

async function post(endpoint, body, read = (response) => response.json()) {
  const response = await answer(endpoint, body);
  if (response.ok) return read(response);
  const { error } = await response.json().catch(() => ({}));
  throw new CallError(error?.kind ?? (response.status === 401 ? "Unauthorized" : "Internal"), error?.message ?? `HTTP ${response.status}`);
}

async function withSession(endpoint, body, read) {
  if (unlocking) await unlocking;
  const used = session;
  try {
    return await post(endpoint, body, read);
  } catch (error) {
    if (error.kind !== "Unauthorized") throw error;
    if (used === session) await unlock("", new CallError(error.kind, t("sessionOver"))); // the server was started again: the page and what is typed in it stay
    return post(endpoint, body, read);
  }
}

async function askHost(endpoint, body) {
  let data;
  try {
    data = await host.api(`/${endpoint}`, body);
  } catch (error) {
    throw new CallError(error?.kind ?? "Unreachable", String(error?.message ?? error));
  }
  if (data?.error) throw new CallError(data.error.kind ?? "Internal", data.error.message ?? String(data.error));
  return data;
}

/** Call an endpoint and return its data. Throws CallError. */
export const call = (endpoint, body = {}) => (inLangBot ? askHost(endpoint, body) : withSession(endpoint, body));

/** The body of an answer as it is, for saving; only under `ltm serve`. */
export const download = (endpoint, body) => withSession(endpoint, body, (response) => response.blob());
