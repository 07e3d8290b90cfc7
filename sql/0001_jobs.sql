-- commitq, schema version 1. Each statement can be run again after a crash halfway. {prefix} is replaced by the prefix.
-- All times are UTC, from the server's clock. '1970-01-01' stands for "none": these columns have a fixed width, so that
-- a claim and a completion update the row in place.

CREATE TABLE IF NOT EXISTS {prefix}schema (
  version INT UNSIGNED NOT NULL,
  applied_at DATETIME(6) NOT NULL,
  PRIMARY KEY (version)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin ROW_FORMAT=DYNAMIC
  COMMENT='commitq: the migrations that were applied';

-- Payloads above 1 KiB, written once: the row image of each state change of a job stays small in the binlog.
-- Written before its job, so a job never stands without its payload.
CREATE TABLE IF NOT EXISTS {prefix}payloads (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  payload LONGBLOB NOT NULL,
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin ROW_FORMAT=DYNAMIC
  COMMENT='commitq: payloads above 1 KiB';

CREATE TABLE IF NOT EXISTS {prefix}jobs (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  queue VARCHAR(64) NOT NULL,
  type VARCHAR(128) NOT NULL,
  state ENUM('pending','running','completed','dead','cancelled','blocked') NOT NULL DEFAULT 'pending',
  priority TINYINT UNSIGNED NOT NULL DEFAULT 5 COMMENT '0 is first, 9 is last',
  attempt SMALLINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'goes up at claim',
  max_attempts SMALLINT UNSIGNED NOT NULL DEFAULT 0 COMMENT '0: what the handler says, set at the first claim',
  available_at DATETIME(6) NOT NULL COMMENT 'runs no earlier',
  owner BINARY(16) NOT NULL DEFAULT '' COMMENT 'token of the worker that holds, or last held, the job',
  lease_until DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00.000000',
  created_at DATETIME(6) NOT NULL,
  started_at DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00.000000' COMMENT 'the last claim',
  finished_at DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00.000000',
  payload_id BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT '0: the payload is here',
  payload_size INT UNSIGNED NOT NULL DEFAULT 0,
  payload VARBINARY(1024) NOT NULL DEFAULT '',
  headers VARBINARY(4096) NOT NULL DEFAULT '',
  last_error VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (id),
  KEY claim (queue, state, priority, available_at, id)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin ROW_FORMAT=DYNAMIC
  COMMENT='commitq: jobs';

CREATE TABLE IF NOT EXISTS {prefix}queues (
  queue VARCHAR(64) NOT NULL,
  created_at DATETIME(6) NOT NULL,
  paused TINYINT UNSIGNED NOT NULL DEFAULT 0,
  retention_seconds INT UNSIGNED NOT NULL DEFAULT 0 COMMENT '0: keep finished jobs',
  PRIMARY KEY (queue)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin ROW_FORMAT=DYNAMIC
  COMMENT='commitq: queues that workers have served';

CREATE TABLE IF NOT EXISTS {prefix}workers (
  token BINARY(16) NOT NULL COMMENT 'random for each start: the owner in the jobs table',
  host VARCHAR(255) NOT NULL,
  pid INT UNSIGNED NOT NULL,
  version VARCHAR(32) NOT NULL,
  queues VARBINARY(4096) NOT NULL,
  started_at DATETIME(6) NOT NULL,
  heartbeat_at DATETIME(6) NOT NULL,
  lease_ms INT UNSIGNED NOT NULL,
  held INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'jobs claimed and not finished',
  completed BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'since its start',
  failed BIGINT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'attempts since its start',
  PRIMARY KEY (token)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin ROW_FORMAT=DYNAMIC
  COMMENT='commitq: who is alive';

-- Work that one process does at a time; its row is locked while it is done.
CREATE TABLE IF NOT EXISTS {prefix}duties (
  duty VARCHAR(32) NOT NULL,
  last_run_at DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00.000000',
  PRIMARY KEY (duty)
) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin ROW_FORMAT=DYNAMIC
  COMMENT='commitq: work that one process does at a time';

INSERT IGNORE INTO {prefix}duties (duty) VALUES ('probe'), ('reap');

-- Jobs for people to read: NULL where nothing is set, and the payload wherever it stands.
CREATE OR REPLACE VIEW {prefix}jobs_view AS
SELECT j.id, j.queue, j.type, j.state, j.priority, j.attempt, j.max_attempts, j.available_at,
       IF(j.owner = x'00000000000000000000000000000000', NULL, LOWER(HEX(j.owner))) AS owner,
       NULLIF(j.lease_until, '1970-01-01 00:00:00.000000') AS lease_until,
       j.created_at,
       NULLIF(j.started_at, '1970-01-01 00:00:00.000000') AS started_at,
       NULLIF(j.finished_at, '1970-01-01 00:00:00.000000') AS finished_at,
       j.last_error, j.headers, j.payload_size, IF(j.payload_id = 0, j.payload, p.payload) AS payload
  FROM {prefix}jobs j LEFT JOIN {prefix}payloads p ON p.id = j.payload_id;
