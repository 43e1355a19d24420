"""Row-level security by space: a second wall, in the database, behind the one of the engine.

It binds every user but the owner of the tables, and those with BYPASSRLS. `space_grants` says which spaces a user that
logs in may see: NULL is all, no row is none. A store that is opened for some spaces is bound to these, too, by a
setting of each transaction. The owner is not checked, so it pays nothing.

The list of spaces is computed once a statement. `=` of texts and numbers is leakproof, so indexes serve as before; the
GIN indexes of tags and metadata do not, because `@>` is not leakproof: who is checked finds tags by other conditions.
"""

from __future__ import annotations

from collections.abc import Sequence

SETTING = "nacre.spaces"

_SEEN = "coalesce({column} = ANY ((SELECT own_spaces())::text[]), true)"  # NULL: all are seen

# A user is known by the name that it logged in with, so that no SET ROLE leads out. The body is resolved when it is
# created, so that no search_path leads elsewhere.
SCRIPT = f"""
CREATE TABLE space_grants (
  role   name PRIMARY KEY,                -- that logs in
  spaces text[] COLLATE "C"               -- NULL: all
);
ALTER TABLE space_grants ENABLE ROW LEVEL SECURITY; -- without a policy: for the owner alone, whatever is granted

CREATE FUNCTION own_spaces() RETURNS text[] LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
  SELECT CASE
    WHEN g.role IS NULL THEN '{{}}'::text[]
    WHEN g.spaces IS NULL THEN s.given
    WHEN s.given IS NULL THEN g.spaces
    ELSE ARRAY(SELECT unnest(g.spaces) INTERSECT SELECT unnest(s.given))
  END
  FROM (SELECT nullif(current_setting('{SETTING}', true), '')::text[] AS given) AS s
  LEFT JOIN space_grants AS g ON g.role = session_user;
END;

DO $$
DECLARE
  name text;
BEGIN
  FOR name IN
    SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'space'
    WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p')
  LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format($p$CREATE POLICY own_spaces ON %I USING ({_SEEN.format(column="space")})$p$, name);
  END LOOP;
END $$;
-- A purge deletes what was delivered of a memory in other spaces.
CREATE POLICY delivered_elsewhere ON deliveries FOR SELECT USING ({_SEEN.format(column="memory_space")});
CREATE POLICY purged_elsewhere ON deliveries FOR DELETE USING ({_SEEN.format(column="memory_space")});

ALTER TABLE access_tokens ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_spaces ON access_tokens
USING ((SELECT own_spaces()) IS NULL OR spaces <@ (SELECT own_spaces())::text[]);
ALTER TABLE kept_answers ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_answers ON kept_answers USING (made_by = session_user);
-- A purge clears the answers of all users.
CREATE FUNCTION clear_answers() RETURNS void LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
  UPDATE kept_answers SET purged = true, status = NULL, headers = NULL, body = NULL WHERE (key, made_by) IN
    (SELECT key, made_by FROM kept_answers WHERE NOT answered OR quotes ORDER BY key, made_by FOR UPDATE);
END;
REVOKE EXECUTE ON FUNCTION clear_answers() FROM PUBLIC;
"""


def setting(spaces: Sequence[str]) -> str:
    """The value of the setting that binds a transaction to these spaces: an array as PostgreSQL reads it."""
    quoted = (each.replace("\\", "\\\\").replace('"', '\\"') for each in spaces)
    return "{" + ",".join(f'"{each}"' for each in quoted) + "}"
