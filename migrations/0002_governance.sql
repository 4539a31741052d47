-- Governance: lineage of summaries, review queues, injections, erasure, intents, closed audit segments, and history that can be undone.

ALTER TABLE profile_fact ADD COLUMN stored_us INTEGER;
ALTER TABLE fence ADD COLUMN operation_key TEXT NOT NULL DEFAULT '';

CREATE TABLE lineage (
  summary     INTEGER NOT NULL REFERENCES episode (key) ON DELETE CASCADE,
  source      INTEGER NOT NULL REFERENCES episode (key),
  source_hash BLOB NOT NULL,
  PRIMARY KEY (summary, source),
  CONSTRAINT lineage_in_space CHECK (summary >> 32 = source >> 32),
  CONSTRAINT lineage_other CHECK (summary <> source)
) STRICT, WITHOUT ROWID;
CREATE INDEX lineage_source ON lineage (source);

CREATE TABLE candidate (
  key        INTEGER PRIMARY KEY AUTOINCREMENT,
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

CREATE TABLE certificate (
  id     TEXT NOT NULL PRIMARY KEY,
  space  INTEGER NOT NULL REFERENCES space (id),
  at_us  INTEGER NOT NULL,
  counts TEXT NOT NULL CONSTRAINT certificate_counts_json CHECK (json_valid(counts))
) STRICT, WITHOUT ROWID;
CREATE TABLE erased (
  space       INTEGER NOT NULL,
  digest      BLOB NOT NULL,
  certificate TEXT NOT NULL REFERENCES certificate (id),
  PRIMARY KEY (space, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE intent (
  key           INTEGER PRIMARY KEY AUTOINCREMENT,
  space         INTEGER REFERENCES space (id),
  operation     TEXT NOT NULL,
  operation_key TEXT NOT NULL,
  progress      TEXT NOT NULL,
  holder        TEXT NOT NULL,
  lease_us      INTEGER NOT NULL
) STRICT;

CREATE TABLE audit_segment (
  space     INTEGER NOT NULL,
  first_key INTEGER NOT NULL,
  last_key  INTEGER NOT NULL,
  last_hash BLOB NOT NULL,
  last_us   INTEGER NOT NULL,
  closed_us INTEGER NOT NULL,
  PRIMARY KEY (space, last_key),
  CONSTRAINT segment_in_space CHECK (first_key >> 32 = space AND last_key >> 32 = space AND first_key <= last_key)
) STRICT, WITHOUT ROWID;
DROP TRIGGER audit_no_delete;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
WHEN NOT EXISTS (SELECT 1 FROM audit_segment WHERE space = coalesce(old.space, 0) AND old.key BETWEEN first_key AND last_key)
BEGIN SELECT raise(ABORT, 'audit is append-only'); END;

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
DROP TRIGGER speaker_renamed;
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
-- Texts written twice by another program have no hash while the other is active; one that may get it now.
CREATE INDEX episode_unhashed ON episode (key) WHERE content_hash = x'';
CREATE INDEX episode_document ON episode (space, document) WHERE document IS NOT NULL;
CREATE INDEX episode_imported ON episode (space, json_extract(extra, '$.imported_episode_id')) WHERE extra IS NOT NULL;

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
DROP TRIGGER episode_revised;
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
DROP TRIGGER episode_dropped;
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
DROP TRIGGER fact_revised;
CREATE TRIGGER fact_revised BEFORE UPDATE ON profile_fact BEGIN
  INSERT INTO revision (space, source, row, image) VALUES (old.space, 'profile_fact', old.id, json_object(
    'change', 'update', 'speaker', old.speaker, 'field', old.field, 'slot', old.slot, 'value', old.value,
    'status', old.status, 'reason', old.reason, 'confidence', old.confidence, 'created_us', old.created_us,
    'ended_us', old.ended_us, 'stored_us', old.stored_us));
END;
DROP TRIGGER fact_dropped;
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
