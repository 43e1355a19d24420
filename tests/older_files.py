"""Store files as older versions wrote them, made from files of this version."""

from __future__ import annotations

import apsw


def to_eleventh(db: apsw.Connection) -> None:
    """Take back the versions of the schema after it: keys and expiry, what exports need, and what a server keeps."""
    db.execute(
        """
        DROP INDEX memories_by_language;
        DROP TRIGGER memories_pending_further; DROP TRIGGER texts_pending_further;
        DROP TABLE further_models; DROP TABLE further_passages; DROP TABLE further_pending;
        DROP TABLE access_tokens; DROP TABLE kept_answers;
        DROP INDEX events_by_uid;
        ALTER TABLE events DROP COLUMN uid;
        DROP TRIGGER memories_reinstated;
        DROP TABLE displaced; DROP TABLE changes;
        DROP INDEX memories_identity; DROP INDEX memories_keyed_texts; DROP INDEX memories_by_key;
        DROP INDEX memories_expiring;
        ALTER TABLE memories DROP COLUMN key;
        ALTER TABLE memories DROP COLUMN expires_us;
        ALTER TABLE memories DROP COLUMN language;
        CREATE UNIQUE INDEX memories_live_text ON memories (space, content_hash) WHERE deleted_us IS NULL;
        UPDATE meta SET value = '11' WHERE key = 'schema_version';
        """
    )
