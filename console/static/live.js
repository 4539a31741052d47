// Follows the file: asks every two seconds, while the page is seen, whether any process committed to it.
import { call } from "./transport.js";
import { emit } from "./state.js";

const EVERY = 2000;

/** Emit "changes" when the file changed, "lost" and "found" when its server goes and comes back. */
export function follow() {
  let version;
  let lost = false;
  let timer;
  async function look() {
    clearTimeout(timer);
    if (document.visibilityState === "visible") {
      try {
        const now = (await call("changes")).version;
        if (lost) emit("found");
        if (version !== undefined && (version !== now || lost)) emit("changes");
        [version, lost] = [now, false];
      } catch (error) {
        if (error.kind === "Unreachable" && !lost) emit("lost");
        lost ||= error.kind === "Unreachable";
      }
    }
    timer = setTimeout(look, EVERY);
  }
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && look());
  timer = setTimeout(look, EVERY);
}
