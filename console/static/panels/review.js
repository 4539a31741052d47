// Review: what waits for a person. Candidates one by one or several together; proposals beside what they were drawn from.
import { h, keyed, number, said, when } from "../dom.js";
import { label, t } from "../i18n.js";
import { act } from "../state.js";
import { badge, button, confirmed, empty, heading, pager, region, section, write } from "../ui.js";
import { control, fieldsOf, form } from "../forms.js";
import { episodeLine, stars } from "./episodes.js";

const SIZE = 20;

export function reviewPanel() {
  const panels = [candidates(), proposals(), consolidation()];
  return {
    node: h("div", { class: "panel" }, heading(t("nav.review"), t("reviewHint")), panels.map((each) => each.node)),
    refresh: (quiet) => Promise.all(panels.map((each) => each.refresh(quiet))),
  };
}

// ----------------------------------------------------------------------------------------- candidates

function candidates() {
  const selected = new Set();
  const status = statusControl("candidate list", () => (selected.clear(), pages.reset(), list.read()));
  const pages = pager(() => list.read());
  const list = region(
    () => act("candidate list", { status: status.get(), limit: SIZE, cursor: pages.cursor }),
    (page) => {
      pages.show(page, page.candidates.length, SIZE);
      for (const id of [...selected]) if (!page.candidates.some((each) => each.candidate_id === id && each.status === "pending")) selected.delete(id);
      counted();
      return page.candidates.length ? rows.show(page.candidates) : empty(t("noCandidates"), t("noCandidatesHint"));
    },
  );

  const rows = keyed(h("ul", { class: "rows" }), (each) => each.candidate_id, (each) => {
    const id = each.candidate_id;
    const pending = each.status === "pending";
    const box = h("input",
      { type: "checkbox", checked: selected.has(id), data: { key: `candidate ${id}` }, "aria-label": t("selectThis", { text: textOf(each).slice(0, 60) }) },
    );
    box.addEventListener("change", () => (box.checked ? selected.add(id) : selected.delete(id), counted()));
    return h("li", { class: "row" },
      pending && h("label", { class: "pick" }, box),
      h("div", { class: "row-main" }, pair(each)),
      pending && h("div", { class: "actions" },
        button(t("accept"), () => decide("accept", [id]), { write: true, key: `accept ${id}` }),
        button(t("reject"), () => decide("reject", [id]), { write: true, key: `reject ${id}` }),
      ),
    );
  });

  /** What would be kept, beside where it comes from. */
  const pair = (each) =>
    h(
      "div",
      { class: "pair" },
      h("div", null,
        h("p", { class: "eyebrow" }, t(each.candidate_type === "ignore" ? "nothingKept" : "wouldBecome")),
        h("p", null, said(textOf(each))),
        h("p", { class: "meta" },
          badge("candidateType", each.candidate_type),
          !["pending"].includes(each.status) && badge("candidateStatus", each.status),
          place(each.payload),
          each.payload.importance && stars(each.payload.importance),
          (each.payload.tags ?? []).map((tag) => h("span", { class: "tag" }, said(tag, 64))),
        ),
      ),
      h("div", null,
        h("p", { class: "eyebrow" }, t("comesFrom")),
        h("p", null, each.sender_id ? said(each.sender_name || each.sender_id, 80) : t("nobody")),
        h("p", { class: "meta" },
          when(each.created_at),
          label("claim", each.payload.claim_type ?? "unknown"),
          each.payload.source_ref && said(each.payload.source_ref, 80),
        ),
        each.reason && h("p", { class: "hint", dir: "auto" }, said(label("candidateReason", each.reason), 200)),
      ),
    );
  const textOf = (each) => String(each.payload.content ?? each.payload.value ?? label("candidateType", each.candidate_type));
  const place = (body) => body.field && h("span", { class: "quiet" },
    [label("profileField", body.field), body.fact_key, label("profileAction", body.action)].filter(Boolean).join(" · "),
  );

  async function decide(verb, ids) {
    const many = ids.length > 1 && !(await confirmed(
      t(`${verb}Selected`),
      t(`${verb}Sure`, { n: ids.length }),
      t(verb),
      { danger: verb === "reject" },
    ));
    if (many) return;
    await write(`candidate ${verb}`, { ids }, { said: t(`${verb}ed`, { n: ids.length }) });
    for (const id of ids) selected.delete(id);
  }

  const all = h("input", { type: "checkbox", id: "candidate-all" });
  all.addEventListener("change", () => {
    for (const each of list.data?.candidates ?? []) if (each.status === "pending") all.checked ? selected.add(each.candidate_id) : selected.delete(each.candidate_id);
    counted();
  });
  const chosen = h("span", { role: "status" });
  const bulk = h("div", { class: "actions" },
    button(t("accept"), () => decide("accept", [...selected]), { write: true, kind: "primary", name: t("acceptSelected") }),
    button(t("reject"), () => decide("reject", [...selected]), { write: true, name: t("rejectSelected") }),
  );
  const bar = h("div", { class: "toolbar selection" },
    h("label", { class: "pick", for: "candidate-all" }, all, h("span", null, t("selectPage"))),
    chosen,
    bulk,
  );
  function counted() {
    for (const box of rows.node.querySelectorAll(".pick input")) box.checked = selected.has(box.dataset.key.slice(10));
    const pending = (list.data?.candidates ?? []).filter((each) => each.status === "pending").length;
    all.checked = pending > 0 && selected.size === pending;
    all.indeterminate = selected.size > 0 && selected.size < pending;
    chosen.textContent = selected.size ? t("selectedCount", { n: selected.size }) : "";
    bulk.hidden = !selected.size;
    bar.hidden = !pending;
    bar.classList.toggle("on", selected.size > 0);
  }
  return { node: section(t("candidates"), h("div", { class: "toolbar" }, status.node),
    bar,
    list.node,
    pages.node,
  ), refresh: (quiet) => list.read(quiet) };
}

function statusControl(action, changed) {
  const [field] = fieldsOf(action, ["status"]);
  const made = control({ name: "status", help: "", choices: field?.choices ?? ["pending", "all"], default: "pending", required: true });
  made.input.addEventListener("change", changed);
  return made;
}

// ------------------------------------------------------------------------------------------ proposals

function proposals() {
  const status = statusControl("consolidate proposals", () => list.read());
  const list = region(
    () => act("consolidate proposals", { status: status.get() }),
    (found) => (found.length ? rows.show(found) : empty(t("noProposals"), t("noProposalsHint"))),
  );
  const rows = keyed(h("ul", { class: "rows" }), (each) => each.proposal_id, (each) =>
    h(
      "li",
      { class: "row tall" },
      h("div", { class: "row-main" },
        h("div", { class: "pair" },
          h("div", null,
            h("p", { class: "eyebrow" }, t("proposedSummary")),
            each.content ? h("p", null, said(each.content, 2000)) : h("p", { class: "hint" }, t("textGone")),
            h("p", { class: "meta" },
              badge("proposalStatus", each.status),
              h("span", null, said(each.model, 60)),
              h("span", null, t("expires"), " ", when(each.expires_at)),
            ),
          ),
          h("div", null,
            h("p", { class: "eyebrow" }, t("drawnFromN", { n: each.sources.length })),
            h("ul", { class: "rows plain" },
              each.sources.map((one) => h("li", { class: "row" }, episodeLine(one, { key: `proposal ${each.proposal_id}` }))),
            ),
          ),
        ),
        each.status === "pending" && h("div", { class: "actions" },
          button(t("publish"), () => publish(each), { write: true, kind: "primary", key: `publish ${each.proposal_id}` }),
          button(t("reject"), () => write("consolidate reject", { proposal_id: each.proposal_id }, { said: t("rejected_one") }), { write: true }),
        ),
      ),
    ),
  );
  const publish = async (each) => {
    if (await confirmed(
      t("publish"),
      t("publishSure", { n: each.sources.length }),
      t("publish"),
      { danger: false },
    )) await write("consolidate run", { proposal_id: each.proposal_id }, { said: t("published") });
  };
  return { node: section(t("proposals"), h("div", { class: "toolbar" }, status.node), list.node), refresh: (quiet) => list.read(quiet) };
}

// -------------------------------------------------------------------------------------- consolidation

function consolidation() {
  const list = region(
    () => act("consolidate preview"),
    (found) => [
      found.notes.map((each) => h("p", { class: "notice", dir: "auto" }, each)),
      part(t("wouldArchive", { n: found.n_superseded }), found.superseded, "archive"),
      h("div", { class: "actions" },
        button(t("archiveSuperseded", { n: found.n_superseded }), () => run(found.n_superseded),
          { write: true, key: "run", disabled: found.n_superseded === 0 },
        ),
      ),
      part(t("wouldSummarise", { n: found.sources.length }), found.sources, "summarise"),
    ],
  );
  const part = (title, episodes, key) => h("details", { data: { key: `preview ${key}` } },
    h("summary", null, title),
    episodes.length ? h("ul", { class: "rows" },
      episodes.map((each) => h("li", { class: "row" }, episodeLine(each, { key }))),
    ) : h("p", { class: "hint" }, t("nothingThere")),
  );
  const run = async (n) => {
    if (await confirmed(t("archiveTitle"), t("archiveSure", { n }), t("archive"), { danger: false })) await write("consolidate run", {}, { said: t("archivedCount", { n: number(n) }) });
  };
  const draft = form(fieldsOf("consolidate draft", ["model"]), {
    submit: t("draft"),
    write: true,
    row: true,
    kind: "",
    onSubmit: (values) => write("consolidate draft", values, { said: t("drafted") }),
  });
  return { node: section(t("consolidation"), list.node, h("h3", null, t("draftTitle")), draft.node), refresh: (quiet) => list.read(quiet) };
}
