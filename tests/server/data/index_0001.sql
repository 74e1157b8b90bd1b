BEGIN TRANSACTION;
CREATE TABLE alert (
	id INTEGER NOT NULL, 
	project INTEGER NOT NULL, 
	rule TEXT NOT NULL, 
	condition TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	opened DOUBLE NOT NULL, 
	closed DOUBLE, 
	message TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE alert_watch (
	project INTEGER NOT NULL, 
	rule TEXT NOT NULL, 
	condition TEXT NOT NULL, 
	score BIGINT NOT NULL, 
	watches TEXT NOT NULL, 
	PRIMARY KEY (project, rule, condition)
);
CREATE TABLE api_key (
	id INTEGER NOT NULL, 
	project INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	sha256 BLOB NOT NULL, 
	rights TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	used DOUBLE, 
	revoked DOUBLE, 
	PRIMARY KEY (id), 
	UNIQUE (sha256)
);
CREATE TABLE chunk (
	id INTEGER NOT NULL, 
	project INTEGER NOT NULL, 
	trace_id TEXT NOT NULL, 
	day TEXT NOT NULL, 
	place BIGINT NOT NULL, 
	spans INTEGER NOT NULL, 
	bytes INTEGER NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE conversation (
	id INTEGER NOT NULL, 
	project INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	source TEXT NOT NULL, 
	framework TEXT, 
	service TEXT, 
	agents TEXT NOT NULL, 
	preview TEXT, 
	started DOUBLE, 
	ended DOUBLE, 
	seen DOUBLE NOT NULL, 
	read DOUBLE NOT NULL, 
	status TEXT NOT NULL, 
	turns INTEGER NOT NULL, 
	runs INTEGER NOT NULL, 
	dispatches INTEGER NOT NULL, 
	spans INTEGER NOT NULL, 
	input_tokens BIGINT, 
	output_tokens BIGINT, 
	cost_usd DOUBLE, 
	verdict TEXT, 
	failed INTEGER NOT NULL, 
	day TEXT NOT NULL, 
	place BIGINT NOT NULL, 
	gone BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (project, "key")
);
INSERT INTO "conversation" VALUES(1,1,'c1',1,'complete','test',NULL,NULL,'["desk","refunds"]',NULL,1767225600.0,1767225602.0,1767225603.0,1767225604.0,'completed',1,2,1,7,NULL,NULL,NULL,'passed',0,'2026-01-01',1,0);
CREATE TABLE conversation_trace (
	project INTEGER NOT NULL, 
	trace_id TEXT NOT NULL, 
	conversation BIGINT NOT NULL, 
	PRIMARY KEY (project, trace_id, conversation)
);
CREATE TABLE deletion (
	day TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	why TEXT NOT NULL, 
	bodies BIGINT NOT NULL, 
	bytes BIGINT NOT NULL, 
	conversations BIGINT NOT NULL, 
	PRIMARY KEY (day)
);
CREATE TABLE delivery (
	id INTEGER NOT NULL, 
	project INTEGER NOT NULL, 
	alert BIGINT NOT NULL, 
	change TEXT NOT NULL, 
	channel TEXT NOT NULL, 
	message TEXT NOT NULL, 
	delivered DOUBLE, 
	answer TEXT, 
	attempts INTEGER NOT NULL, 
	due DOUBLE NOT NULL, 
	error TEXT, 
	PRIMARY KEY (id)
);
CREATE TABLE dispatch (
	project INTEGER NOT NULL, 
	conversation BIGINT NOT NULL, 
	id TEXT NOT NULL, 
	turn INTEGER NOT NULL, 
	from_agent TEXT, 
	to_agent TEXT NOT NULL, 
	agent_version TEXT, 
	kind TEXT NOT NULL, 
	mode TEXT NOT NULL, 
	basis TEXT NOT NULL, 
	status TEXT NOT NULL, 
	depth INTEGER NOT NULL, 
	started DOUBLE, 
	ended DOUBLE, 
	input_tokens BIGINT, 
	output_tokens BIGINT, 
	cost_usd DOUBLE, 
	service TEXT, 
	verdict TEXT, 
	PRIMARY KEY (project, conversation, id)
);
INSERT INTO "dispatch" VALUES(1,1,'d1',0,'desk','refunds',NULL,'delegate','foreground','stated','completed',0,1767225600.0,1767225601.0,NULL,NULL,NULL,NULL,'passed');
CREATE TABLE gap (
	project INTEGER NOT NULL, 
	bucket INTEGER NOT NULL, 
	count BIGINT NOT NULL, 
	PRIMARY KEY (project, bucket)
);
CREATE TABLE inbox_read (
	id BIGINT NOT NULL, 
	project INTEGER NOT NULL, 
	PRIMARY KEY (project, id)
);
CREATE TABLE index_revision (version_num VARCHAR(32) NOT NULL);
INSERT INTO "index_revision" VALUES('0001');
CREATE TABLE issue (
	id INTEGER NOT NULL, 
	project INTEGER NOT NULL, 
	signature TEXT NOT NULL, 
	title TEXT NOT NULL, 
	state TEXT NOT NULL, 
	first DOUBLE NOT NULL, 
	last DOUBLE NOT NULL, 
	count BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (project, signature)
);
CREATE TABLE job (
	id INTEGER NOT NULL, 
	project INTEGER NOT NULL, 
	created DOUBLE NOT NULL, 
	"by" TEXT NOT NULL, 
	request TEXT NOT NULL, 
	state TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	folder TEXT, 
	status TEXT, 
	exit_code INTEGER, 
	error TEXT, 
	ended DOUBLE, 
	PRIMARY KEY (id)
);
CREATE TABLE judging (
	id INTEGER NOT NULL, 
	project INTEGER NOT NULL, 
	conversation BIGINT NOT NULL, 
	version INTEGER NOT NULL, 
	rule TEXT NOT NULL, 
	state TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	due DOUBLE NOT NULL, 
	error TEXT, 
	created DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (project, conversation, version, rule)
);
CREATE TABLE label (
	id INTEGER NOT NULL, 
	project INTEGER NOT NULL, 
	conversation BIGINT NOT NULL, 
	subject TEXT NOT NULL, 
	rubric TEXT NOT NULL, 
	value TEXT NOT NULL, 
	"by" TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	note TEXT, 
	origin TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE project (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	created DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "project" VALUES(1,'default',1.79540288529109621044e+09);
CREATE TABLE result_sent (
	project INTEGER NOT NULL, 
	score BIGINT NOT NULL, 
	PRIMARY KEY (project)
);
CREATE TABLE rollup (
	project INTEGER NOT NULL, 
	hour BIGINT NOT NULL, 
	from_agent TEXT NOT NULL, 
	to_agent TEXT NOT NULL, 
	agent_version TEXT NOT NULL, 
	evaluator TEXT NOT NULL, 
	count BIGINT NOT NULL, 
	passed BIGINT NOT NULL, 
	failed BIGINT NOT NULL, 
	errors BIGINT NOT NULL, 
	skipped BIGINT NOT NULL, 
	value_sum DOUBLE NOT NULL, 
	value_count BIGINT NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	cost_usd DOUBLE NOT NULL, 
	seconds DOUBLE NOT NULL, 
	PRIMARY KEY (project, hour, from_agent, to_agent, agent_version, evaluator)
);
INSERT INTO "rollup" VALUES(1,490896,'desk','refunds','','dispatch_scope',10,8,2,0,0,8.0,10,100,10,0.5,20.0);
CREATE TABLE run (
	project INTEGER NOT NULL, 
	conversation BIGINT NOT NULL, 
	id TEXT NOT NULL, 
	turn INTEGER NOT NULL, 
	agent TEXT NOT NULL, 
	agent_version TEXT, 
	model TEXT, 
	status TEXT NOT NULL, 
	started DOUBLE, 
	ended DOUBLE, 
	input_tokens BIGINT, 
	output_tokens BIGINT, 
	cost_usd DOUBLE, 
	tool_calls INTEGER NOT NULL, 
	PRIMARY KEY (project, conversation, id)
);
INSERT INTO "run" VALUES(1,1,'r1',0,'desk',NULL,NULL,'completed',1767225600.0,1767225601.0,NULL,NULL,NULL,0);
INSERT INTO "run" VALUES(1,1,'r2',0,'refunds',NULL,NULL,'completed',1767225600.0,1767225601.0,NULL,NULL,NULL,0);
CREATE TABLE score (
	id INTEGER NOT NULL, 
	project INTEGER NOT NULL, 
	conversation BIGINT NOT NULL, 
	version INTEGER NOT NULL, 
	rule TEXT NOT NULL, 
	sampled BOOLEAN NOT NULL, 
	evaluator TEXT NOT NULL, 
	type TEXT NOT NULL, 
	evaluator_version TEXT NOT NULL, 
	unit TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	dispatch TEXT, 
	from_agent TEXT, 
	to_agent TEXT, 
	agent_version TEXT, 
	status TEXT NOT NULL, 
	value DOUBLE, 
	threshold DOUBLE, 
	reason TEXT, 
	finding TEXT, 
	details TEXT NOT NULL, 
	evidence TEXT NOT NULL, 
	judge TEXT, 
	cost_usd DOUBLE, 
	at DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "score" VALUES(1,1,1,1,'all',1,'dispatch_scope','dispatch_scope','1','dispatch','["d1"]','d1','desk','refunds',NULL,'passed',1.0,NULL,NULL,NULL,'{}','[]',NULL,NULL,1767225600.0);
CREATE TABLE spending (
	project INTEGER NOT NULL, 
	rule TEXT NOT NULL, 
	period TEXT NOT NULL, 
	cost_usd DOUBLE NOT NULL, 
	PRIMARY KEY (project, rule, period)
);
CREATE TABLE tie (
	project INTEGER NOT NULL, 
	trace_id TEXT NOT NULL, 
	other TEXT NOT NULL, 
	PRIMARY KEY (project, trace_id, other)
);
CREATE TABLE trace (
	project INTEGER NOT NULL, 
	trace_id TEXT NOT NULL, 
	first_seen DOUBLE NOT NULL, 
	last_seen DOUBLE NOT NULL, 
	spans INTEGER NOT NULL, 
	logs INTEGER NOT NULL, 
	root BOOLEAN NOT NULL, 
	changed BOOLEAN NOT NULL, 
	due DOUBLE NOT NULL, 
	read DOUBLE, 
	shown DOUBLE, 
	error TEXT, 
	reader TEXT, 
	PRIMARY KEY (project, trace_id)
);
CREATE INDEX trace_by_due ON trace (changed, due);
CREATE INDEX tie_by_other ON tie (project, other);
CREATE INDEX chunk_by_trace ON chunk (project, trace_id);
CREATE INDEX chunk_by_day ON chunk (day);
CREATE INDEX conversation_by_day ON conversation (day);
CREATE INDEX conversation_by_verdict ON conversation (project, verdict, coalesce(started, seen));
CREATE INDEX conversation_by_start ON conversation (project, coalesce(started, seen), id);
CREATE INDEX conversation_trace_by_conversation ON conversation_trace (project, conversation);
CREATE INDEX run_by_agent ON run (project, agent, started);
CREATE INDEX dispatch_by_target ON dispatch (project, to_agent, started);
CREATE INDEX dispatch_by_start ON dispatch (project, started);
CREATE INDEX dispatch_by_sender ON dispatch (project, from_agent, started);
CREATE INDEX dispatch_by_edge ON dispatch (project, from_agent, to_agent, started);
CREATE INDEX dispatch_by_verdict ON dispatch (project, verdict, started);
CREATE INDEX score_by_rule ON score (project, rule, id);
CREATE INDEX score_by_finding ON score (project, finding, at) WHERE finding IS NOT NULL;
CREATE INDEX score_by_evaluator ON score (project, evaluator, status, at);
CREATE INDEX score_by_conversation ON score (project, conversation, version);
CREATE INDEX rollup_by_evaluator ON rollup (project, evaluator, hour);
CREATE INDEX judging_by_due ON judging (state, due);
CREATE INDEX alert_by_rule ON alert (project, rule, subject);
CREATE INDEX delivery_by_due ON delivery (delivered, due);
CREATE INDEX delivery_by_alert ON delivery (project, alert);
CREATE INDEX label_by_conversation ON label (project, conversation);
CREATE INDEX label_by_rubric ON label (project, rubric, at);
CREATE INDEX job_by_state ON job (state, id);
COMMIT;
