-- The end state of an ltm database: what a file looks like after every step in migrations/.
-- Read it first. It is never executed; a test keeps it equal to what the migrations build.
--
-- Times are INTEGER microseconds since 1970-01-01 UTC (`_us`). JSON is text. Every table can be read, edited
-- and deleted from with the plain sqlite3 shell (3.37 or newer): triggers use nothing but built-in functions and never
-- touch a virtual table. What they cannot keep current they note in `stale`, which the engine works off.
--
-- Base tables: space, speaker, speaker_name, profile_fact, episode, episode_tag, lineage, candidate, proposal, proposal_source,
-- injection, audit, audit_segment, revision, operation, intent, fence, certificate, erased, setting.
-- Derived, droppable and rebuildable: speaker_alias, episode_fts, episode_vector, stale, job.

PRAGMA application_id = 0x6c746d31;  -- 'ltm1'

-- Where memories belong. One row per session (a chat), and one per bot whose chats share their episodes.
CREATE TABLE space (
  id            INTEGER PRIMARY KEY CONSTRAINT space_id_range CHECK (id BETWEEN 1 AND 0x3fffffff),
  kind          TEXT NOT NULL CONSTRAINT space_kind_known CHECK (kind IN ('session', 'bot', 'user', 'global')),
  bot           TEXT NOT NULL,            -- may be '': an identity of its own
  launcher_type TEXT NOT NULL,            -- 'person' or 'group'; '' unless kind = 'session'
  launcher_id   TEXT NOT NULL,            -- '' unless kind = 'session'
  created_us    INTEGER NOT NULL,
  next_seq      INTEGER NOT NULL DEFAULT 1,  -- of the next episode; sequences are never used twice
  n_episodes    INTEGER NOT NULL DEFAULT 0,  -- kept by trigger, like the next two
  n_active      INTEGER NOT NULL DEFAULT 0,
  n_terms       INTEGER NOT NULL DEFAULT 0,  -- sum of episode.n_terms: the lengths behind this space's BM25
  CONSTRAINT space_identity UNIQUE (kind, bot, launcher_type, launcher_id),
  CONSTRAINT space_session_named CHECK ((kind = 'session') = (launcher_type <> ''))
) STRICT;

-- Who speaks in a space. The identity is sender_id; the name is an attribute that may change.
CREATE TABLE speaker (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice
  space     INTEGER NOT NULL REFERENCES space (id),
  sender_id TEXT NOT NULL CONSTRAINT speaker_id_given CHECK (sender_id <> ''),
  name      TEXT NOT NULL,                -- current name, '' when none was ever given
  first_us  INTEGER NOT NULL,
  last_us   INTEGER NOT NULL,
  CONSTRAINT speaker_identity UNIQUE (space, sender_id),
  CONSTRAINT speaker_in_space UNIQUE (id, space)  -- what composite foreign keys point at
) STRICT;

-- Every name a speaker has gone by.
CREATE TABLE speaker_name (
  speaker  INTEGER NOT NULL REFERENCES speaker (id) ON DELETE CASCADE,
  name     TEXT NOT NULL,
  first_us INTEGER NOT NULL,
  PRIMARY KEY (speaker, name)
) STRICT, WITHOUT ROWID;

-- Derived from speaker_name: normal forms of names and of their parts, by which a question finds a speaker.
CREATE TABLE speaker_alias (
  space   INTEGER NOT NULL,
  alias   TEXT NOT NULL,
  speaker INTEGER NOT NULL REFERENCES speaker (id) ON DELETE CASCADE,
  PRIMARY KEY (space, alias, speaker)
) STRICT, WITHOUT ROWID;

-- L1. One row per value a profile field has had; what holds now has status 'current'.
CREATE TABLE profile_fact (
  id         INTEGER PRIMARY KEY,
  space      INTEGER NOT NULL REFERENCES space (id),
  speaker    INTEGER,                     -- whose profile; NULL: the session's own
  field      TEXT NOT NULL CONSTRAINT fact_field_known CHECK (field IN ('name', 'traits', 'preferences', 'notes')),
  slot       TEXT NOT NULL,               -- a named place that holds one value at a time; '' is free-form
  value      TEXT NOT NULL CONSTRAINT fact_value_given CHECK (value <> ''),
  status     TEXT NOT NULL DEFAULT 'current' CONSTRAINT fact_status_known CHECK (status IN ('current', 'superseded', 'removed')),
  reason     TEXT NOT NULL DEFAULT '',    -- why it ended: profile_update, explicit_remove, ...
  confidence REAL CONSTRAINT fact_confidence_range CHECK (confidence BETWEEN 0 AND 1),
  created_us INTEGER NOT NULL,
  ended_us   INTEGER,
  stored_us  INTEGER,                     -- system time of the row where created_us tells another: imports
  FOREIGN KEY (speaker, space) REFERENCES speaker (id, space),
  CONSTRAINT fact_end_matches_status CHECK ((status = 'current') = (ended_us IS NULL)),
  CONSTRAINT fact_slot_only_on_lists CHECK (slot = '' OR field IN ('traits', 'preferences'))
) STRICT;
-- One current value per slot and per name; a free-form value at most once.
CREATE UNIQUE INDEX profile_fact_current ON profile_fact
  (space, coalesce(speaker, 0), field, slot, CASE WHEN slot = '' AND field <> 'name' THEN value ELSE '' END)
  WHERE status = 'current';
CREATE INDEX profile_fact_subject ON profile_fact (space, coalesce(speaker, 0), id);

-- L2. One space is one contiguous range of keys: key = space << 32 | sequence.
CREATE TABLE episode (
  key           INTEGER PRIMARY KEY,
  id            TEXT NOT NULL CONSTRAINT episode_id_unique UNIQUE
                CONSTRAINT episode_id_form CHECK (length(id) = 12 AND id NOT GLOB '*[^0-9a-f]*'),
  space         INTEGER NOT NULL REFERENCES space (id),
  speaker       INTEGER,
  content       TEXT NOT NULL CONSTRAINT episode_content_given CHECK (content <> ''),  -- exactly as given
  importance    INTEGER NOT NULL DEFAULT 2 CONSTRAINT episode_importance_range CHECK (importance BETWEEN 1 AND 5),
  source        TEXT NOT NULL DEFAULT 'agent',
  status        TEXT NOT NULL DEFAULT 'active'
                CONSTRAINT episode_status_known CHECK (status IN ('active', 'superseded', 'archived', 'deleted')),
  created_us    INTEGER NOT NULL,         -- when it was said or stored; what is shown, and what decays
  stored_us     INTEGER NOT NULL,         -- when this row was written: system time, for looking back
  event_us      INTEGER,                  -- when what it tells of happens
  valid_from_us INTEGER,                  -- inclusive
  valid_until_us INTEGER,                 -- exclusive
  source_ref    TEXT NOT NULL DEFAULT '', -- a declared reference to a message or document
  claim_type    TEXT NOT NULL DEFAULT 'unknown'
                CONSTRAINT episode_claim_known CHECK (claim_type IN ('unknown', 'user_statement', 'inference')),
  superseded_by INTEGER REFERENCES episode (key) ON DELETE SET NULL,
  pinned        INTEGER NOT NULL DEFAULT 0 CONSTRAINT episode_pinned_bool CHECK (pinned IN (0, 1)),  -- never decays
  is_update     INTEGER NOT NULL DEFAULT 0 CONSTRAINT episode_update_bool CHECK (is_update IN (0, 1)),  -- has an update tag
  content_hash  BLOB NOT NULL DEFAULT x'',-- of the form and validity in which two count as the same; 8 bytes
  n_terms       INTEGER NOT NULL DEFAULT 0,  -- length in words and bigrams
  document      TEXT,                     -- the document it was read from, if any
  extra         TEXT CONSTRAINT episode_extra_json CHECK (extra IS NULL OR json_valid(extra)),  -- imported fields we do not know
  version       INTEGER NOT NULL DEFAULT 1,
  FOREIGN KEY (speaker, space) REFERENCES speaker (id, space),
  CONSTRAINT episode_key_in_space CHECK (key >> 32 = space),
  CONSTRAINT episode_successor_in_space CHECK (superseded_by >> 32 = space),
  CONSTRAINT episode_successor_other CHECK (superseded_by <> key),
  CONSTRAINT episode_active_has_no_successor CHECK (superseded_by IS NULL OR status <> 'active'),
  CONSTRAINT episode_validity_order CHECK (valid_from_us < valid_until_us),
  CONSTRAINT episode_time_range CHECK (
    created_us BETWEEN -62135596800000000 AND 253402300799999999
    AND coalesce(event_us, 0) BETWEEN -62135596800000000 AND 253402300799999999
    AND coalesce(valid_from_us, 0) BETWEEN -62135596800000000 AND 253402300799999999
    AND coalesce(valid_until_us, 0) BETWEEN -62135596800000000 AND 253402300799999999)
) STRICT;
-- The same text by the same speaker, valid for the same time, is one active memory.
CREATE UNIQUE INDEX episode_duplicate ON episode (space, coalesce(speaker, 0), content_hash)
  WHERE status = 'active' AND content_hash <> x'';
CREATE INDEX episode_newest ON episode (space, created_us);
CREATE INDEX episode_ending ON episode (space, valid_until_us) WHERE valid_until_us IS NOT NULL;
CREATE INDEX episode_successor ON episode (superseded_by) WHERE superseded_by IS NOT NULL;
-- Texts written twice by another program have no hash while the other is active; one that may get it later.
CREATE INDEX episode_unhashed ON episode (key) WHERE content_hash = x'';
CREATE INDEX episode_document ON episode (space, document) WHERE document IS NOT NULL;
CREATE INDEX episode_imported ON episode (space, json_extract(extra, '$.imported_episode_id')) WHERE extra IS NOT NULL;

-- Tags keep their spelling and match without regard to case, width or script form.
CREATE TABLE episode_tag (
  key    INTEGER NOT NULL REFERENCES episode (key) ON DELETE CASCADE,
  folded TEXT NOT NULL,                   -- normal form
  tag    TEXT NOT NULL,
  PRIMARY KEY (key, folded)
) STRICT, WITHOUT ROWID;
CREATE INDEX episode_tag_folded ON episode_tag (folded, key);

-- What a summary was drawn from, and what each source was like then.
CREATE TABLE lineage (
  summary     INTEGER NOT NULL REFERENCES episode (key) ON DELETE CASCADE,
  source      INTEGER NOT NULL REFERENCES episode (key),  -- its summaries go first, by trigger
  source_hash BLOB NOT NULL,              -- SHA-256 of its text, speaker, times and status
  PRIMARY KEY (summary, source),
  CONSTRAINT lineage_in_space CHECK (summary >> 32 = source >> 32),
  CONSTRAINT lineage_other CHECK (summary <> source)
) STRICT, WITHOUT ROWID;
CREATE INDEX lineage_source ON lineage (source);

-- Index of terms, rowid = episode.key. A term is written '<space>_<term>', and once more as '<space>+<term>' where
-- the text holds it twice or more, so a posting list never crosses a space. Written by the engine alone.
CREATE VIRTUAL TABLE episode_fts USING fts5 (
  terms, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '_+#.-@$%&/*=~^|:'"
);
-- Merge early: fewer segments to open for each term, and a smaller index.
INSERT INTO episode_fts (episode_fts, rank) VALUES ('automerge', 2);

-- A generation of vectors: one model in one configuration.
CREATE TABLE embedder (
  id          INTEGER PRIMARY KEY,
  fingerprint TEXT NOT NULL,              -- provider, model, prefixes: as the embedder names itself
  dim         INTEGER NOT NULL CONSTRAINT embedder_dim_range CHECK (dim BETWEEN 1 AND 65536),
  state       TEXT NOT NULL CONSTRAINT embedder_state_known CHECK (state IN ('building', 'current', 'retired')),
  slot        INTEGER NOT NULL CONSTRAINT embedder_slot_range CHECK (slot IN (0, 1)),
  probe       BLOB NOT NULL,              -- vector of a fixed text: tells another model under the same name
  mean        BLOB NOT NULL,              -- mean of a fixed set of texts; queries are centred on it
  low         REAL NOT NULL,              -- centred similarity of unrelated pairs of that set: relevance 0
  high        REAL NOT NULL,              -- of related pairs: relevance 1
  created_us  INTEGER NOT NULL,
  CONSTRAINT embedder_calibration_order CHECK (low < high)
) STRICT;
CREATE UNIQUE INDEX embedder_one_per_state ON embedder (state) WHERE state <> 'retired';
CREATE UNIQUE INDEX embedder_one_per_slot ON embedder (slot) WHERE state <> 'retired';

-- Vectors, one table of their own so that scans of metadata stay narrow. key = slot << 62 | episode.key.
CREATE TABLE episode_vector (
  key    INTEGER PRIMARY KEY,
  vector BLOB NOT NULL                    -- float32, unit length, finite
) STRICT;

-- Episodes (by key) and speakers (by -id) whose derived rows no longer match: noted by trigger, worked off by the engine before it commits, or
-- by the next writer when another program made the edit.
CREATE TABLE stale (
  key   INTEGER PRIMARY KEY,
  cause TEXT NOT NULL CONSTRAINT stale_cause_known CHECK (cause IN ('edit', 'reindex'))
) STRICT;
CREATE INDEX stale_edit ON stale (key) WHERE cause = 'edit';

-- Work to do later that must not be lost. kind 'embed': the episode lacks a vector of the newest generation.
CREATE TABLE job (
  kind       TEXT NOT NULL CONSTRAINT job_kind_known CHECK (kind IN ('embed')),
  target     INTEGER NOT NULL,            -- episode.key
  attempts   INTEGER NOT NULL DEFAULT 0,
  last_error TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (kind, target)
) STRICT, WITHOUT ROWID;

-- What was done, by whom, through what. One chain per space (space NULL: the file itself); append-only.
CREATE TABLE audit (
  key         INTEGER PRIMARY KEY,        -- space << 32 | sequence
  space       INTEGER REFERENCES space (id),
  at_us       INTEGER NOT NULL,
  operation   TEXT NOT NULL,
  target_type TEXT NOT NULL,
  target_id   TEXT NOT NULL,
  via         TEXT NOT NULL,              -- api, cli, tool, command, console
  detail      TEXT CONSTRAINT audit_detail_json CHECK (detail IS NULL OR json_valid(detail)),  -- canonical JSON; NULL once erased
  detail_hash BLOB CONSTRAINT audit_detail_or_hash CHECK ((detail IS NULL) = (detail_hash IS NOT NULL)),  -- SHA-256 of erased detail
  hash        BLOB NOT NULL,              -- SHA-256 over the previous hash and every column above but detail, which enters by its hash
  id          TEXT GENERATED ALWAYS AS (lower(substr(hex(hash), 1, 12))) VIRTUAL,
  CONSTRAINT audit_key_in_space CHECK (key >> 32 = coalesce(space, 0))
) STRICT;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
WHEN NOT (new.detail IS NULL AND new.key = old.key AND new.space IS old.space AND new.at_us = old.at_us
  AND new.operation = old.operation AND new.target_type = old.target_type AND new.target_id = old.target_id
  AND new.via = old.via AND new.hash = old.hash)
BEGIN SELECT raise(ABORT, 'audit is append-only'); END;
-- Closed parts of the audit: entries up to last_key may be deleted, and the chain goes on from last_hash.
CREATE TABLE audit_segment (
  space     INTEGER NOT NULL,
  first_key INTEGER NOT NULL,
  last_key  INTEGER NOT NULL,
  last_hash BLOB NOT NULL,
  last_us   INTEGER NOT NULL,              -- time of the last entry: before it there is no looking back
  closed_us INTEGER NOT NULL,
  PRIMARY KEY (space, last_key),
  CONSTRAINT segment_in_space CHECK (first_key >> 32 = space AND last_key >> 32 = space AND first_key <= last_key)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
WHEN NOT EXISTS (SELECT 1 FROM audit_segment WHERE space = coalesce(old.space, 0) AND old.key BETWEEN first_key AND last_key)
BEGIN SELECT raise(ABORT, 'audit is append-only'); END;

-- The row as it was before each UPDATE and DELETE of episode and profile_fact: undo and looking back.
CREATE TABLE revision (
  id       INTEGER PRIMARY KEY,
  space    INTEGER NOT NULL,
  source   TEXT NOT NULL,                 -- 'episode', 'profile_fact', 'candidate' or 'speaker' (its name)
  row      INTEGER NOT NULL,              -- its primary key
  image    TEXT NOT NULL,                 -- JSON of the row; change 'absent': there was none
  ended_us INTEGER,                       -- when it stopped being so; NULL until the engine commits or finds it
  audit    INTEGER REFERENCES audit (key) -- the operation that ended it; NULL likewise
) STRICT;
CREATE INDEX revision_row ON revision (source, row, id);
CREATE INDEX revision_unclaimed ON revision (id) WHERE audit IS NULL;
CREATE INDEX revision_audit ON revision (audit) WHERE audit IS NOT NULL;

-- Exactly once: what a write with an operation key answered.
CREATE TABLE operation (
  space        INTEGER NOT NULL REFERENCES space (id),
  key          TEXT NOT NULL,
  request_hash BLOB NOT NULL,             -- SHA-256 of the request: the same key with another request is a conflict
  result       TEXT NOT NULL CONSTRAINT operation_result_json CHECK (json_valid(result)),
  at_us        INTEGER NOT NULL,
  PRIMARY KEY (space, key)
) STRICT, WITHOUT ROWID;

-- A block on writes. space NULL: the whole file.
CREATE TABLE fence (
  id         INTEGER PRIMARY KEY,
  space      INTEGER REFERENCES space (id),
  reason     TEXT NOT NULL,
  operation  TEXT NOT NULL,
  since_us   INTEGER NOT NULL,
  cleared_us INTEGER,
  operation_key TEXT NOT NULL DEFAULT ''  -- what is called again with this key may pass, finish, and clear it
) STRICT;
CREATE INDEX fence_standing ON fence (space) WHERE cleared_us IS NULL;

-- L1 or L2 memory proposed by rules or a model, until a person decides. 'ignore' notes that a credential was said, not which.
CREATE TABLE candidate (
  key        INTEGER PRIMARY KEY AUTOINCREMENT,         -- orders them
  id         TEXT NOT NULL CONSTRAINT candidate_id_unique UNIQUE
             CONSTRAINT candidate_id_form CHECK (length(id) = 12 AND id NOT GLOB '*[^0-9a-f]*'),
  space      INTEGER NOT NULL REFERENCES space (id),
  type       TEXT NOT NULL CONSTRAINT candidate_type_known CHECK (type IN ('l1_profile', 'l2_episode', 'ignore')),
  status     TEXT NOT NULL DEFAULT 'pending'
             CONSTRAINT candidate_status_known CHECK (status IN ('pending', 'accepted', 'rejected', 'expired')),
  payload    TEXT NOT NULL CONSTRAINT candidate_payload_json CHECK (json_valid(payload)),
  reason     TEXT NOT NULL CONSTRAINT candidate_reason_length CHECK (length(reason) <= 240),
  sender_id  TEXT NOT NULL DEFAULT '',
  sender_name TEXT NOT NULL DEFAULT '',
  query_id   TEXT NOT NULL DEFAULT '',
  created_us INTEGER NOT NULL,
  updated_us INTEGER NOT NULL,
  result     TEXT CONSTRAINT candidate_result_json CHECK (result IS NULL OR json_valid(result)),
  CONSTRAINT candidate_result_when_accepted CHECK ((status = 'accepted') = (result IS NOT NULL))
) STRICT;
CREATE INDEX candidate_queue ON candidate (space, status, key);

-- A drafted summary that awaits approval. One use: its text goes when it is no longer pending.
CREATE TABLE proposal (
  key            INTEGER PRIMARY KEY AUTOINCREMENT,
  id             TEXT NOT NULL CONSTRAINT proposal_id_unique UNIQUE
                 CONSTRAINT proposal_id_form CHECK (length(id) = 12 AND id NOT GLOB '*[^0-9a-f]*'),
  space          INTEGER NOT NULL REFERENCES space (id),
  status         TEXT NOT NULL DEFAULT 'pending'
                 CONSTRAINT proposal_status_known CHECK (status IN ('pending', 'approved', 'rejected', 'stale', 'expired')),
  content        TEXT NOT NULL,
  model          TEXT NOT NULL,
  valid_from_us  INTEGER,
  valid_until_us INTEGER,
  created_us     INTEGER NOT NULL,
  expires_us     INTEGER NOT NULL,
  CONSTRAINT proposal_text_while_pending CHECK ((status = 'pending') = (content <> ''))
) STRICT;
CREATE INDEX proposal_queue ON proposal (space, status, key);
CREATE TABLE proposal_source (
  proposal    INTEGER NOT NULL REFERENCES proposal (key) ON DELETE CASCADE,
  source      INTEGER NOT NULL,
  source_hash BLOB NOT NULL,
  PRIMARY KEY (proposal, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX proposal_source_of ON proposal_source (source);

-- What was put into prompts: the last 50 of each session space.
CREATE TABLE injection (
  key      INTEGER PRIMARY KEY AUTOINCREMENT,
  id       TEXT NOT NULL CONSTRAINT injection_id_unique UNIQUE,
  space    INTEGER NOT NULL REFERENCES space (id),
  at_us    INTEGER NOT NULL,
  snapshot TEXT NOT NULL CONSTRAINT injection_snapshot_json CHECK (json_valid(snapshot))
) STRICT;
CREATE INDEX injection_space ON injection (space, key);
CREATE TRIGGER injection_ring AFTER INSERT ON injection BEGIN
  DELETE FROM injection WHERE space = new.space
    AND key <= (SELECT key FROM injection WHERE space = new.space ORDER BY key DESC LIMIT 1 OFFSET 50);
END;

-- Operations of several transactions that have begun. One whose holder is gone becomes a fence at the next open.
CREATE TABLE intent (
  key           INTEGER PRIMARY KEY AUTOINCREMENT,
  space         INTEGER REFERENCES space (id),
  operation     TEXT NOT NULL,
  operation_key TEXT NOT NULL,
  progress      TEXT NOT NULL,            -- in words
  holder        TEXT NOT NULL,            -- machine, process and its start
  lease_us      INTEGER NOT NULL          -- until when it counts as alive without proof
) STRICT;

-- That something was erased, when and how much; never what.
CREATE TABLE certificate (
  id     TEXT NOT NULL PRIMARY KEY,
  space  INTEGER NOT NULL REFERENCES space (id),
  at_us  INTEGER NOT NULL,
  counts TEXT NOT NULL CONSTRAINT certificate_counts_json CHECK (json_valid(counts))
) STRICT, WITHOUT ROWID;
-- Keyed digests of erased texts, by which an import that would bring one back is stopped.
CREATE TABLE erased (
  space       INTEGER NOT NULL,
  digest      BLOB NOT NULL,              -- BLAKE2b of the form that duplicates share, keyed per space
  certificate TEXT NOT NULL REFERENCES certificate (id),
  PRIMARY KEY (space, digest)
) STRICT, WITHOUT ROWID;

-- Configuration and facts about the file. space 0: the file.
CREATE TABLE setting (
  space INTEGER NOT NULL DEFAULT 0,
  name  TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (space, name)
) STRICT, WITHOUT ROWID;

-- Counters, sequences and notes about derived rows.
-- Not even a program that leaves foreign keys off can orphan a memory or hand it to somebody else.
-- Identities never change, and REPLACE, which fires no delete trigger, cannot take one away.
CREATE TRIGGER space_fixed BEFORE UPDATE OF id, kind, bot, launcher_type, launcher_id ON space
WHEN (new.id, new.kind, new.bot, new.launcher_type, new.launcher_id) IS NOT (old.id, old.kind, old.bot, old.launcher_type, old.launcher_id)
BEGIN SELECT raise(ABORT, 'the identity of a space never changes'); END;
CREATE TRIGGER space_not_replaced BEFORE INSERT ON space WHEN EXISTS (SELECT 1 FROM space WHERE id = new.id
  OR (kind, bot, launcher_type, launcher_id) = (new.kind, new.bot, new.launcher_type, new.launcher_id))
BEGIN SELECT raise(ABORT, 'that space exists; update its row instead'); END;
CREATE TRIGGER episode_not_replaced BEFORE INSERT ON episode WHEN EXISTS (SELECT 1 FROM episode WHERE key = new.key OR id = new.id)
BEGIN SELECT raise(ABORT, 'that episode exists; update its row instead'); END;
CREATE TRIGGER episode_twin_kept BEFORE UPDATE OF content_hash, status, speaker ON episode
WHEN new.status = 'active' AND new.content_hash <> x'' AND EXISTS (SELECT 1 FROM episode WHERE space = new.space
  AND coalesce(speaker, 0) = coalesce(new.speaker, 0) AND content_hash = new.content_hash AND content_hash <> x'' AND status = 'active'
  AND key <> new.key)
BEGIN SELECT raise(ABORT, 'episode_duplicate'); END;
CREATE TRIGGER fact_not_replaced BEFORE INSERT ON profile_fact WHEN EXISTS (SELECT 1 FROM profile_fact WHERE id = new.id)
BEGIN SELECT raise(ABORT, 'that fact exists; update its row instead'); END;
CREATE TRIGGER audit_not_replaced BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE key = new.key)
BEGIN SELECT raise(ABORT, 'audit is append-only'); END;
CREATE TRIGGER speaker_fixed BEFORE UPDATE OF id, space ON speaker WHEN new.id <> old.id OR new.space <> old.space
BEGIN SELECT raise(ABORT, 'id and space of a speaker never change'); END;
CREATE TRIGGER speaker_not_replaced BEFORE INSERT ON speaker
WHEN EXISTS (SELECT 1 FROM speaker WHERE id = new.id OR (space, sender_id) = (new.space, new.sender_id))
BEGIN SELECT raise(ABORT, 'that speaker exists; update the row instead'); END;
CREATE TRIGGER space_kept BEFORE DELETE ON space
BEGIN SELECT raise(ABORT, 'a space is kept for its audit; delete its episodes and facts instead'); END;
CREATE TRIGGER speaker_kept BEFORE DELETE ON speaker
WHEN EXISTS (SELECT 1 FROM episode WHERE space = old.space AND speaker = old.id)
  OR EXISTS (SELECT 1 FROM profile_fact WHERE space = old.space AND speaker = old.id)
BEGIN SELECT raise(ABORT, 'a speaker with episodes or facts is kept; delete those first'); END;
CREATE TRIGGER speaker_deleted AFTER DELETE ON speaker BEGIN
  DELETE FROM speaker_name WHERE speaker = old.id;
  DELETE FROM speaker_alias WHERE space = old.space AND speaker = old.id;
END;
CREATE TRIGGER speaker_inserted AFTER INSERT ON speaker BEGIN
  INSERT OR IGNORE INTO stale (key, cause) VALUES (-new.id, 'edit');
END;
CREATE TRIGGER speaker_renamed AFTER UPDATE OF name, sender_id ON speaker
WHEN new.name <> old.name OR new.sender_id <> old.sender_id BEGIN
  INSERT OR IGNORE INTO stale (key, cause) VALUES (-new.id, 'edit');
END;
CREATE TRIGGER speaker_name_inserted AFTER INSERT ON speaker_name BEGIN
  INSERT OR IGNORE INTO stale (key, cause) VALUES (-new.speaker, 'edit');
END;
CREATE TRIGGER speaker_name_updated AFTER UPDATE ON speaker_name BEGIN
  INSERT OR IGNORE INTO stale (key, cause) VALUES (-old.speaker, 'edit'), (-new.speaker, 'edit');
END;
CREATE TRIGGER speaker_name_deleted AFTER DELETE ON speaker_name BEGIN
  INSERT OR IGNORE INTO stale (key, cause) VALUES (-old.speaker, 'edit');
END;
CREATE TRIGGER episode_placed BEFORE INSERT ON episode WHEN NOT EXISTS (SELECT 1 FROM space WHERE id = new.space)
BEGIN SELECT raise(ABORT, 'an episode needs a space that exists'); END;
CREATE TRIGGER episode_inserted AFTER INSERT ON episode BEGIN
  UPDATE space SET next_seq = max(next_seq, (new.key & 0xffffffff) + 1), n_episodes = n_episodes + 1,
    n_active = n_active + (new.status = 'active'), n_terms = n_terms + new.n_terms WHERE id = new.space;
  INSERT OR IGNORE INTO stale (key, cause) VALUES (new.key, 'edit');
END;
CREATE TRIGGER episode_deleted AFTER DELETE ON episode BEGIN
  UPDATE space SET n_episodes = n_episodes - 1, n_active = n_active - (old.status = 'active'),
    n_terms = n_terms - old.n_terms WHERE id = old.space;
  DELETE FROM episode_tag WHERE key = old.key;
  DELETE FROM episode_vector WHERE key IN (old.key, old.key | (1 << 62));
  DELETE FROM job WHERE kind = 'embed' AND target = old.key;
  UPDATE episode SET superseded_by = NULL WHERE superseded_by = old.key;
  INSERT OR IGNORE INTO stale (key, cause) VALUES (old.key, 'edit');
END;
CREATE TRIGGER episode_counted AFTER UPDATE OF status, n_terms ON episode
WHEN new.status <> old.status OR new.n_terms <> old.n_terms BEGIN
  UPDATE space SET n_active = n_active + (new.status = 'active') - (old.status = 'active'),
    n_terms = n_terms + new.n_terms - old.n_terms WHERE id = new.space;
END;
CREATE TRIGGER episode_reworded AFTER UPDATE OF content ON episode WHEN new.content <> old.content BEGIN
  DELETE FROM episode_vector WHERE key IN (new.key, new.key | (1 << 62));
  INSERT OR IGNORE INTO stale (key, cause) VALUES (new.key, 'edit');
END;
CREATE TRIGGER episode_revalidated AFTER UPDATE OF valid_from_us, valid_until_us ON episode
WHEN new.valid_from_us IS NOT old.valid_from_us OR new.valid_until_us IS NOT old.valid_until_us BEGIN
  INSERT OR IGNORE INTO stale (key, cause) VALUES (new.key, 'edit');
END;
CREATE TRIGGER episode_fixed BEFORE UPDATE OF key, id, space ON episode
WHEN new.key <> old.key OR new.id <> old.id OR new.space <> old.space
BEGIN SELECT raise(ABORT, 'key, id and space of an episode never change'); END;

-- Lifecycle.
CREATE TRIGGER episode_restored BEFORE UPDATE OF status ON episode
WHEN new.status = 'active' AND old.status <> 'active'
  AND EXISTS (SELECT 1 FROM episode WHERE key = old.superseded_by AND status = 'active')
BEGIN SELECT raise(ABORT, 'episode_restored: its successor is active'); END;
CREATE TRIGGER episode_chained BEFORE UPDATE OF superseded_by ON episode
WHEN new.superseded_by IS NOT NULL AND EXISTS (
  WITH RECURSIVE later (key) AS (SELECT new.superseded_by UNION
    SELECT e.superseded_by FROM later JOIN episode e ON e.key = later.key WHERE e.superseded_by IS NOT NULL)
  SELECT 1 FROM later WHERE key = new.key)
BEGIN SELECT raise(ABORT, 'episode_chained: an episode cannot come after itself'); END;
-- What was drawn from an episode goes when that changes, ends or is gone; so do drafts that cite it.
CREATE TRIGGER episode_source_changed AFTER UPDATE OF content, speaker, status, event_us, valid_from_us, valid_until_us, claim_type
ON episode WHEN new.content <> old.content OR (old.status = 'active' AND new.status <> 'active') OR new.claim_type <> old.claim_type
  OR (new.speaker, new.event_us, new.valid_from_us, new.valid_until_us)
    IS NOT (old.speaker, old.event_us, old.valid_from_us, old.valid_until_us) BEGIN
  DELETE FROM episode WHERE key IN (WITH RECURSIVE derived (key) AS (SELECT summary FROM lineage WHERE source = new.key UNION
    SELECT l.summary FROM derived d JOIN lineage l ON l.source = d.key) SELECT key FROM derived);
  UPDATE proposal SET status = 'stale', content = '' WHERE status = 'pending'
    AND key IN (SELECT proposal FROM proposal_source WHERE source = new.key);
END;
CREATE TRIGGER episode_source_dropped BEFORE DELETE ON episode BEGIN
  DELETE FROM episode WHERE key IN (WITH RECURSIVE derived (key) AS (SELECT summary FROM lineage WHERE source = old.key UNION
    SELECT l.summary FROM derived d JOIN lineage l ON l.source = d.key) SELECT key FROM derived);
  UPDATE proposal SET status = 'stale', content = '' WHERE status = 'pending'
    AND key IN (SELECT proposal FROM proposal_source WHERE source = old.key);
END;
CREATE TRIGGER episode_lineage_dropped AFTER DELETE ON episode BEGIN
  DELETE FROM lineage WHERE summary = old.key;
END;

-- History. Tags and lineage belong to the image of an episode: every edit of them touches the episode first.
CREATE TRIGGER episode_revised BEFORE UPDATE OF speaker, content, importance, source, status, created_us, event_us,
  valid_from_us, valid_until_us, source_ref, claim_type, superseded_by, pinned, document, extra, version ON episode BEGIN
  INSERT INTO revision (space, source, row, image) VALUES (old.space, 'episode', old.key, json_object(
    'change', 'update', 'id', old.id, 'speaker', old.speaker, 'content', old.content, 'importance', old.importance,
    'source', old.source, 'status', old.status, 'created_us', old.created_us, 'stored_us', old.stored_us,
    'event_us', old.event_us, 'valid_from_us', old.valid_from_us, 'valid_until_us', old.valid_until_us,
    'source_ref', old.source_ref, 'claim_type', old.claim_type, 'superseded_by', old.superseded_by,
    'pinned', old.pinned, 'document', old.document, 'extra', old.extra, 'version', old.version,
    'tags', json((SELECT json_group_array(tag) FROM (SELECT tag FROM episode_tag WHERE key = old.key ORDER BY folded)))));
END;
CREATE TRIGGER episode_dropped BEFORE DELETE ON episode BEGIN
  INSERT INTO revision (space, source, row, image) VALUES (old.space, 'episode', old.key, json_object(
    'change', 'delete', 'id', old.id, 'speaker', old.speaker, 'content', old.content, 'importance', old.importance,
    'source', old.source, 'status', old.status, 'created_us', old.created_us, 'stored_us', old.stored_us,
    'event_us', old.event_us, 'valid_from_us', old.valid_from_us, 'valid_until_us', old.valid_until_us,
    'source_ref', old.source_ref, 'claim_type', old.claim_type, 'superseded_by', old.superseded_by,
    'pinned', old.pinned, 'document', old.document, 'extra', old.extra, 'version', old.version,
    'tags', json((SELECT json_group_array(tag) FROM (SELECT tag FROM episode_tag WHERE key = old.key ORDER BY folded))),
    'lineage', json((SELECT json_group_array(json_array(source, hex(source_hash))) FROM lineage WHERE summary = old.key))));
END;
CREATE TRIGGER fact_revised BEFORE UPDATE ON profile_fact BEGIN
  INSERT INTO revision (space, source, row, image) VALUES (old.space, 'profile_fact', old.id, json_object(
    'change', 'update', 'speaker', old.speaker, 'field', old.field, 'slot', old.slot, 'value', old.value,
    'status', old.status, 'reason', old.reason, 'confidence', old.confidence, 'created_us', old.created_us,
    'ended_us', old.ended_us, 'stored_us', old.stored_us));
END;
CREATE TRIGGER fact_dropped BEFORE DELETE ON profile_fact BEGIN
  INSERT INTO revision (space, source, row, image) VALUES (old.space, 'profile_fact', old.id, json_object(
    'change', 'delete', 'speaker', old.speaker, 'field', old.field, 'slot', old.slot, 'value', old.value,
    'status', old.status, 'reason', old.reason, 'confidence', old.confidence, 'created_us', old.created_us,
    'ended_us', old.ended_us, 'stored_us', old.stored_us));
END;
CREATE TRIGGER speaker_revised BEFORE UPDATE OF name ON speaker WHEN new.name <> old.name BEGIN
  INSERT INTO revision (space, source, row, image) VALUES (old.space, 'speaker', old.id, json_object(
    'change', 'update', 'name', old.name, 'stored_us', old.first_us));
END;
CREATE TRIGGER candidate_revised BEFORE UPDATE ON candidate BEGIN
  INSERT INTO revision (space, source, row, image) VALUES (old.space, 'candidate', old.key, json_object(
    'change', 'update', 'status', old.status, 'payload', old.payload, 'updated_us', old.updated_us, 'result', old.result));
END;

-- For people: every episode in words. Columns may be added, never changed.
CREATE VIEW memory AS
SELECT e.id, s.kind AS space_kind, s.bot, s.launcher_type, s.launcher_id, p.sender_id, p.name AS speaker, e.status,
  e.importance, strftime('%Y-%m-%dT%H:%M:%SZ', e.created_us / 1000000, 'unixepoch') AS created_at, e.content
FROM episode e JOIN space s ON s.id = e.space LEFT JOIN speaker p ON p.id = e.speaker;
