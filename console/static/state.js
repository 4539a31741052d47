// What the page knows: the start answer, the open space, who listens; and the one way to run an action.
import { call } from "./transport.js";
import { language } from "./i18n.js";

export const app = { start: null, space: null, speakers: [], fences: [], go: () => {}, openEpisode: () => {} };

const listeners = {};

export function on(event, listener) {
  (listeners[event] ??= new Set()).add(listener);
  return () => listeners[event].delete(listener);
}

export function emit(event, data) {
  for (const listener of [...(listeners[event] ?? [])]) listener(data);
}

// A file action needs no space; one on a space asked for without any (a fence on the whole file) takes an empty one.
const NOWHERE = { bot: "", launcher_type: "person", launcher_id: "console", isolation: "session", speaker: null };

/** Run an action; waits for its job if it has one, telling `progress` (done, total). Throws CallError. */
export async function act(action, input = {}, { space = app.space, speaker, progress } = {}) {
  const on = app.start.actions[action]?.on;
  const place = on === "file" ? null : { ...(space ?? NOWHERE), speaker: speaker ?? space?.speaker ?? null };
  const answer = await call("do", { action, space: place, input, language: language() });
  return answer.job === undefined ? answer.result : finished(answer.job, progress);
}

async function finished(id, progress) {
  for (let pause = 150; ; pause = Math.min(pause * 1.3, 1000)) {
    const { jobs } = await call("jobs", { language: language() });
    const job = jobs.find((each) => each.id === id);
    if (!job) throw Object.assign(new Error(id), { kind: "NotFound" });
    progress?.(job.done, job.total);
    if (job.state === "done") return job.result;
    if (job.state === "failed") throw Object.assign(new Error(job.error.message), { kind: job.error.kind });
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

export const has = (action) => action in app.start.actions;
export const isReadOnly = () => Boolean(app.start?.read_only);

/** The fences that stop writes to the open space: those of the file, of the chat, and of the bot whose memory it shares. */
export function fencesHere() {
  const { space } = app;
  const same = (scope) => space && ["bot", "launcher_type", "launcher_id"].every((part) => scope[part] === space[part]);
  return app.fences.filter((each) => (each.scope ? same(each.scope) : each.key === "" || (space && each.key === userKey(space))));
}

export const sessionKey = ({ bot, launcher_type: type, launcher_id: id }) => `${bot ? `${bot}:` : ""}${type}_${id}`;
export const userKey = (space) => (space.isolation === "session" ? sessionKey(space) : space.bot ? `bot:${space.bot}` : "global");

/** Open a space (or none) and tell every panel. */
export function openSpace(space) {
  app.space = space;
  app.speakers = [];
  emit("space");
}

/** Let go of whoever listens to an event: the panels that did are gone. */
export function quiet(event) {
  listeners[event]?.clear();
}
