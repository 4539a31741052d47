"""The Chinese of answers: WORDS for what words.py and `!memory` say, SENTENCES for what the engine, the actions and the hosts say.

A key is the English as it stands in the sources. In SENTENCES a place may say what it takes: `{n:d}` a number, `{x:n}` the
name of a field or a thing, `{x:w}` words that have an entry here themselves, `{x:s}` words that may have one, `{x}` anything. Names of fields, options and commands stay
as they are typed. One term for one thing:

  memory, episode 记忆 · profile 画像 · fact 条目 · space 记忆空间 · chat, session 会话 · speaker 发言者 · audit 审计
  candidate 候选 · proposal 提案 · consolidation 整理 · fence 写入锁定 · lineage 来源 · supersede 取代 · archive 归档
  restore 恢复 · forget 遗忘 · erase 抹除 · embedder 嵌入模型 · vector 向量 · injection 注入 · credential 凭据 · slot 槽位
"""

from __future__ import annotations

# -------------------------------------------------------------------------------------------- words.py

WORDS: dict[str, str] = {
    # marks
    ": ": "：",
    ", ": "、",
    "; ": "；",
    "{n} more {name} not shown": "另有 {n} 项{name}未显示",
    "{flat}... ({n:,} characters)": "{flat}……（共 {n:,} 个字符）",
    " ({status})": "（{status}）",
    "undo: {command} undo {id}": "撤销：{command} undo {id}",
    "note: {note}": "注意：{note}",
    "more: --cursor {cursor}": "更多：--cursor {cursor}",
    "more: the same command with {cursor} at its end": "更多：在同一命令末尾加上 {cursor}",
    "{n} of {total}": "{n} 条，共 {total} 条",
    "removed {id}, drawn from it": "一并移除 {id}，它由这条记忆得出",
    "removed {id}, drawn from them": "一并移除 {id}，它由这些记忆得出",
    "would remove {id}, drawn from them": "将会一并移除 {id}，它由这些记忆得出",
    # episodes
    "stored": "已存入",
    "already stored as": "早已存有",
    "answered before:": "此前已答复：",
    "superseded {id}": "已取代 {id}",
    "{points} = {score:.3f}; relevance {relevance:.2f}": "{points} = {score:.3f}；相关度 {relevance:.2f}",
    "{n} by {reason}": "按{reason} {n} 条",
    "{shown} shown; {considered} considered, {below} not relevant enough": (
        "显示 {shown} 条；考察了 {considered} 条，其中 {below} 条不够相关"
    ),
    "; left out: {dropped}": "；筛除：{dropped}",
    "{code}: {words}": "{code}：{words}",
    "{n} {what}": "{what} {n}",
    "none": "无",
    "deleted": "已删除",
    "would delete": "将会删除",
    "edited": "已编辑",
    "would edit": "将会编辑",
    "{day}  {n:,} {status}, importance {importance}": "{day}  {status} {n:,} 条，重要度 {importance}",
    "(nothing)": "（没有内容）",
    "{episodes:,} episodes, {facts} facts, last {day}": "记忆 {episodes:,} 条，画像条目 {facts} 个，最近 {day}",
    "(nobody)": "（没有人）",
    "{start} to {end}": "{start} 至 {end}",
    "now": "现在",
    "  ended by {operation} {id}": "  终止于 {id}（{operation}）",
    "{change} {kind} {id}": "{change}{kind} {id}",
    "nothing differs": "没有差异",
    # profiles
    "Session": "会话",
    "Speaker": "发言者",
    "(nothing known)": "（一无所知）",
    "{place}: {value} ({why})": "{place}：{value}（{why}）",
    "{outcome}: {added} added, {ended} ended": "{outcome}：新增 {added} 条，终止 {ended} 条",
    # audit
    " by {who}": "，操作者 {who}",
    " via {via}": "，经由{via}",
    "(details erased)": "（详情已抹除）",
    "(no entries)": "（没有记录）",
    "whole up to {head}": "到 {head} 为止完整",
    # review
    "({reason})": "（{reason}）",
    "nothing found": "没有发现",
    "{n} superseded episodes could be archived": "{n} 条被取代的记忆可以归档",
    "{n} active episodes could be summarised": "{n} 条有效记忆可以汇总成摘要",
    "proposal {id} ({status}) by {model}, until {expires}": "提案 {id}（{status}），由 {model} 起草，有效至 {expires}",
    "drawn from": "来源",
    "publish: {command} consolidate run {id}": "发布：{command} consolidate run {id}",
    "(no proposals)": "（没有提案）",
    "drawn from {id}": "来源于 {id}",
    "summarised in {id}": "已汇总进 {id}",
    "drawn from nothing, and nothing was drawn from it": "没有来源，也没有由它得出的摘要",
    # transfer
    "{episodes} episodes and {facts} facts stored, {duplicates} there already": (
        "已存入 {episodes} 条记忆和 {facts} 个画像条目，{duplicates} 条早已存在"
    ),
    "{episodes} episodes and {facts} facts would be stored, {duplicates} there already": (
        "将会存入 {episodes} 条记忆和 {facts} 个画像条目，{duplicates} 条早已存在"
    ),
    "record {position}: {problem}": "记录 {position}：{problem}",
    "record {position}: was erased here and stays out": "记录 {position}：曾在此处抹除，不再导入",
    "(nothing: {reason})": "（无内容：{reason}）",
    "({reason}, {n} characters)": "（{reason}，{n} 个字符）",
    "(nothing was injected yet)": "（还没有注入过）",
    # file
    "erased: {counts}": "已抹除：{counts}",
    "nothing was there": "本来就没有",
    "certificate {id}": "证明 {id}",
    "kept: {id}, in which somebody else says the same": "保留：{id}，其中是别人说的同样的话",
    "looked for {n} texts, as they are and as JSON, in {files}": "在 {files} 中按原文和 JSON 形式查找了 {n} 段文字",
    "found in {place}": "发现于 {place}",
    "none of them was found": "全都没有找到",
    "proven: nothing of it is left in this scope; other chats or people hold the same words": "已证实：此范围内没有任何残留；其他会话或他人持有相同的文字",
    "proven: nothing of it is left": "已证实：没有任何残留",
    "NOT proven: see above": "未能证实：见上文",
    "{active} active of {episodes}, {facts} facts, {speakers} speakers": (
        "{episodes} 条记忆中有效 {active} 条，画像条目 {facts} 个，发言者 {speakers} 位"
    ),
    "(no space holds anything)": "（没有任何记忆空间存有内容）",
    "{status} episodes": "{status}记忆",
    "{fingerprint} ({dim} dimensions, {state})": "{fingerprint}（{dim} 维，{state}）",
    "- {status:<5} {id}: {detail}": "- {status} {id}：{detail}",
    "Result: {status}": "结果：{status}",
    "{done} embedded, {failed} failed, {left} left ({state})": "已生成向量 {done} 条，失败 {failed} 条，剩余 {left} 条（{state}）",
    "last error: {error}": "最近的错误：{error}",
    "fence {id} on {key} since {since}: {reason}": "写入锁定 {id}，范围 {key}，始于 {since}：{reason}",
    "the whole file": "整个文件",
    "cleared {fence}": "已解除{fence}",
    "no fence stands": "没有写入锁定",
    "{name} = {value}  ({what})": "{name} = {value}（{what}）",
    # the page of the console, and !memory in a chat
    "This did not work; the log says why.": "操作没有成功；原因见日志。",
    "Error: the host did not say whose command this is.": "错误：宿主没有说明这条命令是谁发的。",
    "Error: this did not work; the log of the plugin says why.": "错误：操作没有成功；原因见插件日志。",
    "Error: {why}": "错误：{why}",
    "Memory is off: {why}": "记忆无法使用：{why}",
    "\n... ({n:,} characters; use the console or the command line)": "\n……（共 {n:,} 个字符；全文请用控制台或命令行查看）",
    "{word} is no status; there are {known}": "“{word}”不是状态；可用的有 {known}",
    "!memory {name} is not known.": "!memory {name} 不是已知的命令。",
    "Usage: !memory {form}": "用法：!memory {form}",
    "Only an administrator may do this. Administrators are named in the plugin's configuration.": (
        "只有管理员可以这样做。管理员在插件配置中指定。"
    ),
    """\
!memory: what is kept here, and what does not work
search QUESTION, list, show ID, history ID, superseded, archived: find and look back
edit ID NEW TEXT, archive ID, restore ID, forget ID, undo AUDIT-ID: correct
profile, profile edit set|add|remove FIELD VALUE: lasting facts
audit, audit export, audit verify: who did what
export, export l2, export all-current-scope: the data as JSON
health, config, help: whether it works, how it is set
For administrators: stats, import l2|legacy JSON, delete FILTER, candidates, candidate accept|reject ID, consolidate preview|run, \
fence, config set NAME VALUE, config reset NAME""": """\
!memory：这里存有什么，有什么不正常
search 问题、list、show 编号、history 编号、superseded、archived：查找与回顾
edit 编号 新内容、archive 编号、restore 编号、forget 编号、undo 审计编号：更正
profile、profile edit set|add|remove 字段 值：画像，即长期有效的信息
audit、audit export、audit verify：谁做过什么
export、export l2、export all-current-scope：导出为 JSON
health、config、help：是否正常、如何设置
管理员专用：stats、import l2|legacy JSON、delete 筛选条件、candidates、candidate accept|reject 编号、consolidate preview|run、\
fence、config set 名称 值、config reset 名称""",
    "Isolation: {isolation}": "隔离方式：{isolation}",
    "Session: {key}": "会话：{key}",
    "User key: {key}": "用户键：{key}",
    "Speaker: {name} ({id})": "发言者：{name}（{id}）",
    "Speaker: (unknown)": "发言者：（不明）",
    "Session profile: {counts}": "会话画像：{counts}",
    "Speaker profile: {counts}": "发言者画像：{counts}",
    "(empty)": "（空）",
    "{traits} traits, {preferences} preferences": "特征 {traits} 个，偏好 {preferences} 个",
    "Episodes: {n:,} active": "记忆：有效 {n:,} 条",
    "Knowledge base: {base}": "知识库：{base}",
    "none, so nothing is put into prompts; create one with the engine Long-term memory and attach it to the pipeline": (
        "没有，因此不会向提示词注入任何内容；请用“长期记忆”引擎创建一个，并关联到流水线"
    ),
    "{id}, not attached to this pipeline, so nothing is put into its prompts": (
        "{id}，未关联到此流水线，因此不会向其提示词注入任何内容"
    ),
    "{id}, active": "{id}，已启用",
    "Search by meaning: {meaning}": "语义检索：{meaning}",
    "off, memories are found by their words; {why}": "不可用，记忆按词语查找；{why}",
    "no embedding model, memories are found by their words": "没有嵌入模型，记忆按词语查找",
    "{models}; {done:,} of {total:,} episodes have their vector": "{models}；{total:,} 条记忆中 {done:,} 条已有向量",
    "Last turns: {n:.0f}, memory took {p50:.1f} ms (95 %: {p95:.1f} ms), vectors {model:.1f} ms": (
        "最近 {n:.0f} 轮对话：记忆耗时 {p50:.1f} 毫秒（95 % 不超过 {p95:.1f} 毫秒），向量 {model:.1f} 毫秒"
    ),
    "Trouble: {why}": "问题：{why}",
    "File: {path}": "文件：{path}",
    # outcomes
    "changed": "已更改",
    "unchanged": "未更改",
    "repeated": "此前已完成",
    "duplicate": "重复",
    # states
    "active": "有效",
    "superseded": "已取代",
    "archived": "已归档",
    "pending": "待定",
    "accepted": "已接受",
    "rejected": "已拒绝",
    "expired": "已过期",
    "approved": "已发布",
    "stale": "已失效",
    "current": "当前",
    "removed": "已移除",
    "building": "构建中",
    "retired": "已停用",
    "unknown": "不明",
    "user_statement": "用户陈述",
    "inference": "推断",
    "OK": "正常",
    "WARN": "警告",
    "ERROR": "错误",
    "True": "是",
    "added": "新增",
    "ignore": "忽略",
    # what there is of a thing
    "episode": "记忆",
    "episodes": "记忆",
    "fact": "画像条目",
    "facts": "画像条目",
    "l1_profile": "画像",
    "l2_episode": "记忆",
    "profile": "画像",
    "profiles": "画像",
    "profile_fact": "画像条目",
    "audit": "审计记录",
    "audit details": "审计详情",
    "candidate": "候选",
    "candidates": "候选",
    "proposals": "提案",
    "injection": "注入快照",
    "injections": "注入快照",
    "revision": "历史版本",
    "revisions": "历史版本",
    "operations": "操作记录",
    "spaces": "记忆空间",
    "speakers": "发言者",
    "vectors": "向量",
    "bytes": "字节",
    "wal_bytes": "预写日志字节",
    "stats|pending": "等待生成向量",
    "embedder": "嵌入模型",
    "episode_tag": "标签",
    "other": "其他",
    "records": "记录",
    "closed": "已关闭",
    "put back": "放回",
    "summaries left out": "略去的摘要",
    "bot": "机器人",
    "session": "会话",
    # fields
    "id": "编号",
    "content": "内容",
    "tags": "标签",
    "importance": "重要度",
    "timestamp": "时间",
    "created at": "时间",
    "sender id": "发言者编号",
    "sender name": "发言者名字",
    "speaker": "发言者",
    "source": "出处",
    "status": "状态",
    "superseded by": "取代者",
    "event at": "发生于",
    "valid from": "生效于",
    "valid until": "失效于",
    "source ref": "出处引用",
    "claim type": "依据",
    "pinned": "常驻",
    "version": "版本",
    "name": "名字",
    "traits": "特征",
    "preferences": "偏好",
    "notes": "备注",
    "Name": "名字",
    "Traits": "特征",
    "Preferences": "偏好",
    "Recent change": "最近变化",
    "Notes": "备注",
    "Note": "注意",
    # why an episode is not there, and what its score is made of
    "not found": "没有找到",
    "returned": "已返回",
    "outranked": "名次靠后",
    "below threshold": "相关度不足",
    "after": "起始时间",
    "before": "截止时间",
    "not yet valid": "尚未生效",
    "ended": "已失效",
    "hybrid": "混合检索",
    "lexical": "词语",
    "dense": "语义",
    "named": "人名",
    "exact": "完全一致",
    "recency": "新近",
    "update": "更正",
    "mode|lexical": "词语检索",
    # why a profile value ended, and why nothing was injected
    "explicit_remove": "主动移除",
    "freeform_remove": "主动移除",
    "profile_update": "画像更新",
    "field_set_reset": "整栏重设",
    "provided_previous_value": "随新值给出的旧值",
    "import": "导入",
    "injected": "已注入",
    "over budget": "超出预算",
    "blank query": "提问为空",
    "nothing known": "一无所知",
    # what a model answers, and what an audit entry sums up in a word
    "selection": "选取结果",
    "item": "项",
    "draft": "草稿",
    "renamed": "已改名",
    "erased": "已抹除",
    # by what way something was written
    "via|cli": "命令行",
    "via|api": "程序接口",
    "via|console": "控制台",
    "via|command": "聊天命令",
    "via|tool": "模型工具",
    "via|listener": "对话",
    "via|retrieve": "知识库检索",
    "via|ingest": "文档导入",
    # operations
    "remember": "记住",
    "edit": "编辑",
    "forget": "遗忘",
    "undo": "撤销",
    "erase": "抹除",
    "reindex": "重建索引",
    "inject": "注入",
    "configure": "更改设置",
    "restore": "恢复",
    "operation|archived": "归档",
    "operation|deleted": "标记删除",
    "operation|superseded": "取代",
    "set": "设定",
    "add": "新增",
    "remove": "移除",
    "export_profiles": "导出画像",
    "export_l2": "导出记忆",
    "audit_export": "导出审计",
    "edit_bulk": "批量编辑",
    "delete_l2_bulk": "批量删除",
    "delete_document": "删除文档",
    "update_profile": "更新画像",
    "import_l2": "导入",
    "candidate_add": "提出候选",
    "candidate_accept": "接受候选",
    "candidate_reject": "拒绝候选",
    "candidate_expire": "候选过期",
    "consolidate_draft": "起草摘要",
    "consolidate_run": "整理",
    "proposal_reject": "拒绝提案",
    "audit_close": "关闭审计",
    "speaker_rename": "发言者改名",
    "external_edit": "外部编辑",
    "fence_set": "设置写入锁定",
    "fence_clear": "解除写入锁定",
    "intent_resolved": "中断操作了结",
    "commit_settled": "提交已确认",
    "embedder_begin": "启用嵌入模型",
    "embedder_abandon": "放弃嵌入模型",
    "embedder_swap": "切换嵌入模型",
    # kinds of credential
    "password": "密码",
    "code": "验证码",
    "PIN": "PIN 码",
    "private key": "私钥",
    "key": "密钥",
    "token": "令牌",
    "seed phrase": "助记词",
    "card": "银行卡号",
    "identity number": "证件号码",
    "URL with a password": "带密码的网址",
}

SENTENCES: dict[str, str] = {
    # -------------------------------------------------------------------------------- storage and files
    "audit is append-only": "审计只能追加",
    "importance must be 1 to 5": "importance 必须是 1 到 5",
    "content must not be empty": "content 不能为空",
    "valid_from must be before valid_until": "valid_from 必须早于 valid_until",
    "claim_type must be one of {types}": "claim_type 必须是 {types} 之一",
    "the same text by the same speaker is active already": "同一发言者的相同内容已是有效记忆",
    "an active episode cannot have a successor": "有效记忆不能有取代者",
    "the episode that superseded it is active; archive or forget that one first": "取代它的记忆仍然有效；请先归档或遗忘那一条",
    "an episode cannot supersede what supersedes it": "一条记忆不能取代那条取代它的记忆",
    "that place of the profile holds a value by now": "画像的这个位置现在已有值",
    "the database is in use by another process; nothing was written, try again": (
        "数据库正被另一个进程使用；什么都没有写入，请重试"
    ),
    "the database is open for reading only": "数据库以只读方式打开",
    "the disk is full; nothing was written": "磁盘已满；什么都没有写入",
    "a table of the database is missing ({error}); open it again or restore a backup": (
        "数据库缺少一张表（{error}）；请重新打开，或从备份恢复"
    ),
    "a text in the database is not UTF-8 ({error}); it was written by another program": (
        "数据库中有一段文字不是 UTF-8（{error}）；它是由其他程序写入的"
    ),
    "the database file is damaged ({error}); restore a backup": "数据库文件已损坏（{error}）；请从备份恢复",
    "the database refuses the value: {error}": "数据库拒绝该值：{error}",
    "the database file cannot be used: {error}": "数据库文件无法使用：{error}",
    "the value is larger than a database can hold": "该值超出数据库能容纳的大小",
    "the memory is closed": "记忆库已关闭",
    "{path} is open for reading only": "{path} 以只读方式打开",
    "{what:n} is not possible inside a batch; end the batch first": "批处理中不能进行{what}；请先结束批处理",
    "another batch": "另一个批处理",
    "the write was interrupted": "写入被中断",
    "the last commit ended in an I/O error ({error}), and whether it took place cannot be read yet": (
        "上次提交以 I/O 错误告终（{error}），是否生效目前还读不出来"
    ),
    "the last commit ended in an I/O error ({error}), and whether it took place cannot be read yet ({now}); reading works, and writing"
    " does once the disk does": (
        "上次提交以 I/O 错误告终（{error}），是否生效目前还读不出来（{now}）；可以读取，磁盘恢复后即可写入"
    ),
    "{path} has schema version {version:d}; this ltm knows {n:d}. Install a newer ltm-sqlite": (
        "{path} 的结构版本是 {version}；当前 ltm 只认识到 {n}。请安装更新的 ltm-sqlite"
    ),
    "{path} has to be created or migrated first, and is open for reading only": "{path} 需要先创建或迁移，但它以只读方式打开",
    "derived tables are missing from {path} ({tables})": "{path} 缺少派生表（{tables}）",
    "derived tables are missing from {path} ({tables}); open it for writing once, and they are made again": (
        "{path} 缺少派生表（{tables}）；以可写方式打开一次即可重建"
    ),
    "write-ahead logging is not possible here; using journal mode {mode}: readers wait for writers": (
        "此处无法使用预写日志；改用日志模式 {mode}：读取要等待写入"
    ),
    "derived tables were missing; they were made again and are filled at the first use": "缺少派生表；已重建，首次使用时填充",
    "the file was migrated from schema version {version:d}; a verified copy is {name}": (
        "文件已从结构版本 {version} 迁移；校验过的副本是 {name}"
    ),
    "{path} is not an SQLite database; it was left as it is": "{path} 不是 SQLite 数据库；已保持原样",
    "{path} is an SQLite database of another program; it was left as it is": "{path} 是其他程序的 SQLite 数据库；已保持原样",
    "{what:n} must be a path in UTF-8, not {value}": "{what}必须是 UTF-8 路径，而不是 {value}",
    "{what:n} must be a non-empty path, not {value}": "{what}必须是非空路径，而不是 {value}",
    "{path} is in use or was not closed ({name} is there); choose another name": "{path} 正在使用或未正常关闭（存在 {name}）；请另选名称",
    "the copy did not pass its check: {problem:s}": "副本未通过检查：{problem}",
    "the database": "数据库",
    "{path} does not exist": "{path} 不存在",
    "the folder {path} does not exist": "文件夹 {path} 不存在",
    "{path} is a folder": "{path} 是文件夹",
    "the file is write-protected; it was opened for reading only": "文件有写保护；已以只读方式打开",
    "the folder is write-protected; the file was opened as immutable": "文件夹有写保护；文件已按不可变方式打开",
    "{n:d} entries closed": "关闭了 {n} 条审计记录",
    "writes are blocked: {reason:s}. Clear fence {id:d} to go on; reading works": (
        "写入被阻止：{reason}。解除写入锁定 {id} 即可继续；读取不受影响"
    ),
    "the source of ids gives nothing but ids that are in use": "编号生成器只给出已被占用的编号",
    "operation key {key} was used before for another request; nothing was written": (
        "操作键 {key} 此前用于另一个请求；什么都没有写入"
    ),
    "another program edited memories; searches may miss that until the file is opened for writing": (
        "其他程序编辑了记忆；在以可写方式打开文件之前，搜索可能找不到这些改动"
    ),
    "another program had edited memories; the index was brought up to date for {n:d} of them": (
        "其他程序编辑过记忆；已为其中 {n} 条更新索引"
    ),
    "edited by another program": "由其他程序编辑",
    "no standing fence {id}": "没有编号为 {id} 的写入锁定",
    "cleared by a person": "由人工解除",
    "the operation was run again and finished": "操作已重新运行并完成",
    "{operation:s} had finished: its record proves it": "{operation}其实已完成：其记录可以证明",
    "{operation:s} stopped after {progress:s}": "{operation}在完成{progress}后中断",
    "{operation:s} stopped before its first step": "{operation}在第一步之前中断",
    "{operation:s} stopped after {progress:s}; run it again with the same input to finish it, or clear the fence": (
        "{operation}在完成{progress}后中断；请用相同的输入重新运行以完成它，或解除写入锁定"
    ),
    "{operation:s} stopped before its first step; run it again with the same input to finish it, or clear the fence": (
        "{operation}在第一步之前中断；请用相同的输入重新运行以完成它，或解除写入锁定"
    ),
    "an operation did not finish and its space is fenced: {operation:s} stopped after {progress:s}": (
        "一个操作没有完成，其记忆空间已写入锁定：{operation}在完成{progress}后中断"
    ),
    "an operation did not finish and its space is fenced: {operation:s} stopped before its first step": (
        "一个操作没有完成，其记忆空间已写入锁定：{operation}在第一步之前中断"
    ),
    "a backup": "备份",
    "the backup": "备份",
    "{path} exists; choose another name or say overwrite": "{path} 已存在；请另选名称，或指定 overwrite",
    "a backup cannot replace the database it is made of": "备份不能覆盖它所备份的数据库",
    # ------------------------------------------------------------------------------------- what is given
    "{what:n} must be a time, not {value}": "{what} 必须是时间，而不是 {value}",
    "{what:n} {value} has no time zone; write it like 2026-12-08T09:00:00+08:00": (
        "{what} {value} 没有时区；请写成 2026-12-08T09:00:00+08:00 的形式"
    ),
    "{what:n} {value} is not an ISO-8601 time like 2026-12-08T09:00:00+08:00": (
        "{what} {value} 不是 2026-12-08T09:00:00+08:00 这样的 ISO-8601 时间"
    ),
    "{what:n} {value} is not an ISO-8601 time like 2026-12-08T09:00:00+08:00: {error}": (
        "{what} {value} 不是 2026-12-08T09:00:00+08:00 这样的 ISO-8601 时间：{error}"
    ),
    "no such time zone: {zone}": "没有这个时区：{zone}",
    "{what:n} {value:d} is not a time in microseconds UTC between the years 1 and 9999": (
        "{what} {value} 不是公元 1 年到 9999 年之间以微秒计的 UTC 时间"
    ),
    "{what:n} must be text, not {value}": "{what} 必须是文字，而不是 {value}",
    "{what:n} has {n:d} characters; the limit is {limit:d}": "{what} 有 {n} 个字符，上限是 {limit}",
    "{what:n} must not be empty": "{what} 不能为空",
    "{what:n} must be a list of texts, not {value}": "{what} 必须是文字列表，而不是 {value}",
    "{what:n} {value} holds a character that cannot be stored": "{what} {value} 含有无法存储的字符",
    "{what:n} is missing": "缺少 {what}",
    "launcher_type must be 'person' or 'group', not {value}": "launcher_type 必须是 'person' 或 'group'，而不是 {value}",
    "isolation must be 'session' or 'bot', not {value}": "isolation 必须是 'session' 或 'bot'，而不是 {value}",
    "speaker id": "发言者编号",
    "speaker name": "发言者名字",
    "statuses must be some of {statuses}, not {value}": "statuses 只能取 {statuses}，而不是 {value}",
    "importance_min must be 1 to 5, not {value}": "importance_min 必须是 1 到 5，而不是 {value}",
    "{name:n} must be a number from 0 to a million, not {value}": "{name} 必须是 0 到一百万之间的数，而不是 {value}",
    "half_life_days must be above 0": "half_life_days 必须大于 0",
    "floor and min_relevance must be 0 to 1": "floor 和 min_relevance 必须是 0 到 1",
    "{name:n} must be true or false, not {value}": "{name} 必须是 true 或 false，而不是 {value}",
    "{name:n} must be a whole number from {least:d} to {most:d}, not {value}": "{name} 必须是 {least} 到 {most} 之间的整数，而不是 {value}",
    "a space needs a Scope, not {value}": "记忆空间需要 Scope，而不是 {value}",
    "speaker must be a Speaker, not {value}": "speaker 必须是 Speaker，而不是 {value}",
    "the name of a setting": "设置的名称",
    "no setting is called {name}; there are {names}": "没有名为 {name} 的设置；可用的有 {names}",
    "a tag": "标签",
    "{n:d} characters that cannot be stored were replaced by U+FFFD": "{n} 个无法存储的字符已替换为 U+FFFD",
    "tags must be at most {limit:d}, not {n:d}": "标签最多 {limit} 个，而不是 {n} 个",
    "a tag must not be empty": "标签不能为空",
    "importance must be 1 to 5, not {value}": "importance 必须是 1 到 5，而不是 {value}",
    "claim_type must be one of {types}, not {value}": "claim_type 必须是 {types} 之一，而不是 {value}",
    "valid_from {start} must be before valid_until {end}": "valid_from {start} 必须早于 valid_until {end}",
    "an episode id": "记忆编号",
    "{what:n} is text, not {value}": "{what}应是文字，而不是 {value}",
    "where must be a Filter, not {value}": "where 必须是 Filter，而不是 {value}",
    "weights must be Weights, not {value}": "weights 必须是 Weights，而不是 {value}",
    "query must be text, not {value}": "query 必须是文字，而不是 {value}",
    "{what:n} must be a whole number, not {value}": "{what} 必须是整数，而不是 {value}",
    "{value} is not a cursor of an earlier page": "{value} 不是先前某一页给出的游标",
    # ------------------------------------------------------------------------------------------ settings
    "look for memories in what users say": "从用户的话中寻找记忆",
    "accept what rules found at once": "规则找到的候选立即接受",
    "candidates of one message": "每条消息的候选数",
    "days after which a pending candidate expires; 0: never": "待定候选过期的天数；0：永不过期",
    "permit consolidation to write": "允许整理写入",
    "age at which an active episode may be summarised": "有效记忆可被汇总所需的天数",
    "episodes of one consolidation": "一次整理的记忆数",
    "hours after which a drafted summary expires": "摘要草稿过期的小时数",
    "characters put into a prompt": "注入提示词的字符数",
    "minutes east of UTC in which prompts show dates; 480 in China": "提示词中日期所用时区，UTC 以东的分钟数；中国为 480",
    "days after which audit entries are closed and dropped; 0: never": "审计记录关闭并丢弃的天数；0：永不丢弃",
    "traits of a profile that are shown; the rest is kept": "画像中显示的特征数；其余保留",
    "preferences of a profile that are shown; the rest is kept": "画像中显示的偏好数；其余保留",
    # ---------------------------------------------------------------------------------- embedding models
    "another embedder took over from {fingerprint} meanwhile; what it made last was dropped": (
        "期间另一个嵌入模型取代了 {fingerprint}；它最后生成的向量已丢弃"
    ),
    "no embedder is configured": "没有配置嵌入模型",
    "no embedder is asked inside a batch": "批处理中不调用嵌入模型",
    "another process began a third embedder meanwhile; use one embedder for one file": (
        "期间另一个进程启用了第三个嵌入模型；一个文件请只用一个嵌入模型"
    ),
    "a newer embedder ({fingerprint}) is being built; finish it with that one, or give it up with abandon_building()": (
        "较新的嵌入模型（{fingerprint}）正在构建；请用它完成构建，或用 abandon_building() 放弃"
    ),
    "not embedded yet: {error:s}": "尚未生成向量：{error}",
    "no vector extension could be loaded": "无法加载向量扩展",
    "another embedder took over meanwhile": "其间已换用另一个嵌入模型",
    "no memory was embedded by this embedder yet": "这个嵌入模型还没有为任何记忆生成向量",
    "the vectors of this embedder are still being built": "这个嵌入模型的向量仍在构建",
    "a vector was given, but the memory was opened without the embedder it comes from": (
        "给出了向量，但打开记忆库时没有配置生成它的嵌入模型"
    ),
    "this injection was made by another scope; keep it there": "这次注入由另一个范围生成；请在那里保存",
    "the given vector cannot be used: {error:s}": "给出的向量无法使用：{error}",
    "a vector must be a sequence of numbers whose squares can be added: {error}": "向量必须是平方可以相加的数的序列：{error}",
    "the vector has {n:d} components where the embedder declares {dim:d}": "向量有 {n} 个分量，而嵌入模型声明为 {dim} 个",
    "the vector holds NaN, an infinity or numbers too large to square": "向量含有 NaN、无穷大或大到无法平方的数",
    "the vector is zero: it has no direction to compare": "向量为零：没有可比较的方向",
    "the embedder {name} failed: {kind}: {error}": "嵌入模型 {name} 出错：{kind}: {error}",
    "the embedder {name} answered {n:d} vectors for {texts:d} texts; none was used": (
        "嵌入模型 {name} 对 {texts} 段文字返回了 {n} 个向量；均未采用"
    ),
    "the local e5 model is not installed; install ltm-sqlite[e5]": "未安装本地 e5 模型；请安装 ltm-sqlite[e5]",
    "HTTP embedding needs httpx; install ltm-sqlite[http]": "HTTP 嵌入模型需要 httpx；请安装 ltm-sqlite[http]",
    "the embedding endpoint answered {status:d} for {model}": "嵌入接口对 {model} 返回了状态 {status}",
    "the embedding endpoint did not answer: {kind}: {error}": "嵌入接口没有响应：{kind}: {error}",
    "the embedding endpoint's answer is not an embedding list: {error}": "嵌入接口返回的不是向量列表：{error}",
    "the embedding endpoint answered {n:d} vectors for {texts:d} texts; none was used": (
        "嵌入接口对 {texts} 段文字返回了 {n} 个向量；均未采用"
    ),
    "no embedder is called {name}; use e5, hash or http:URL#MODEL:DIMENSIONS": (
        "没有名为 {name} 的嵌入模型；请用 e5、hash 或 http:URL#MODEL:DIMENSIONS"
    ),
    # ----------------------------------------------------------------------------------- language models
    "the model {name} did not answer within {seconds:d} s": "模型 {name} 在 {seconds} 秒内没有回答",
    "the model {name} failed: {kind}: {error}": "模型 {name} 出错：{kind}: {error}",
    "the model {name} answered with {kind}, not with text": "模型 {name} 的回答是 {kind}，而不是文字",
    "the model {name} answered {n:d} characters; the limit is {limit:d}": "模型 {name} 回答了 {n} 个字符，上限是 {limit}",
    "the model's {what:w} is not JSON: {error:s}": "模型给出的{what}不是 JSON：{error}",
    "a field is given twice": "有字段重复给出",
    "{name} is not JSON": "{name} 不是 JSON",
    "the model's {what:w} must have the fields {fields} and no other": "模型给出的{what}必须有且仅有字段 {fields}",
    "the model's {what:w} must have {kind} in {field}, not {other}": "模型给出的{what}的 {field} 必须是 {kind}，而不是 {other}",
    "the model selected {n:d} quotes; the limit is {limit:d}": "模型选取了 {n} 段引文，上限是 {limit}",
    "the model classed a quote as {kind} {field}, which does not exist": "模型把引文归为 {kind} {field}，没有这一类",
    "a quote must have 1 to {limit:d} characters, not {n:d}": "引文必须有 1 到 {limit} 个字符，而不是 {n} 个",
    "the model quoted what is not, word for word, a whole sentence of the message": "模型的引文不是消息中逐字的完整句子",
    "the model's draft must cite each of its sources once, and nothing else": "模型的草稿必须把每条来源各引用一次，且不引用其他内容",
    "the model's draft must have 1 to {limit:d} characters, not {n:d}": "模型的草稿必须有 1 到 {limit} 个字符，而不是 {n} 个",
    "an HTTP model needs httpx; install ltm-sqlite[http]": "HTTP 语言模型需要 httpx；请安装 ltm-sqlite[http]",
    "the model endpoint answered {status:d} for {name}": "模型接口对 {name} 返回了状态 {status}",
    "the model endpoint did not answer: {kind}: {error}": "模型接口没有响应：{kind}: {error}",
    "the model endpoint's answer is not a completion: {error}": "模型接口返回的不是补全结果：{error}",
    "no model is called {name}; use http:URL#MODEL": "没有名为 {name} 的语言模型；请用 http:URL#MODEL",
    "say which model: http:URL#MODEL": "请指明语言模型：http:URL#MODEL",
    "asking a model": "询问语言模型",
    # ------------------------------------------------------------------------------------------ episodes
    "already stored with another {fields:s}, left as it is": "早已存有，但{fields}不同，保持原样",
    "no episode {id} in this space; nothing was written": "此记忆空间中没有记忆 {id}；什么都没有写入",
    "the new text is that of {id} itself; it cannot supersede itself": "新内容就是 {id} 自己的内容；它不能取代自己",
    "episode {id} is {status:w} by {other}: supersede that one instead; nothing was written": (
        "记忆 {id} {status}，取代者是 {other}：请改为取代那一条；什么都没有写入"
    ),
    "episode {id} is {status:w}; nothing was written": "记忆 {id} {status}；什么都没有写入",
    "episode {id} is by another speaker; only its own speaker's correction replaces it": (
        "记忆 {id} 属于另一位发言者；只有其本人的更正才能取代它"
    ),
    "status must be active, archived or deleted, not {value}; superseding names a successor": (
        "status 必须是 active、archived 或 deleted，而不是 {value}；取代时要指明取代者"
    ),
    "{old:w} to {new:w}": "{old} → {new}",
    "episode {id} was superseded by {other}, which is active: archive or forget {it} first, or undo the correction; nothing was"
    " written": "记忆 {id} 已被有效的 {other} 取代：请先归档或遗忘 {it}，或撤销那次更正；什么都没有写入",
    "episode {id} is {status:w} and cannot supersede; nothing was written": "记忆 {id} {status}，不能取代其他记忆；什么都没有写入",
    "superseded by {id}": "被 {id} 取代",
    "{status:w} episode deleted": "删除了一条{status}记忆",
    "say which: a speaker, a tag, a time, a source, an importance or a status; erase takes everything": (
        "请指明范围：发言者、标签、时间、出处、重要度或状态；要清空全部请用 erase"
    ),
    "{n:d} episodes deleted": "删除了 {n} 条记忆",
    "episode {id} is at version {stored:d} by now, not {version:d}; look again and repeat": (
        "记忆 {id} 现在是版本 {stored}，而不是 {version}；请重新查看后再试"
    ),
    "edited {fields:s}": "编辑了{fields}",
    "give 1 to {limit:d} ids, not {n:d}": "请给出 1 到 {limit} 个编号，而不是 {n} 个",
    "say what to change: importance, status, pinned or tags": "请指明要更改什么：importance、status、pinned 或标签",
    "{n:d} episodes edited": "编辑了 {n} 条记忆",
    "order must be one of {orders}, not {value}": "order 必须是 {orders} 之一，而不是 {value}",
    "utc_offset_minutes must be a whole number from -840 to 840, not {value}": (
        "utc_offset_minutes 必须是 -840 到 840 之间的整数，而不是 {value}"
    ),
    "no episode {id} in this space at {time}": "此记忆空间在 {time} 没有记忆 {id}",
    "no episode {id} in this space": "此记忆空间中没有记忆 {id}",
    "no episode {id} in this space, and none in its history": "此记忆空间中没有记忆 {id}，历史中也没有",
    # ------------------------------------------------------------------------------------ history and undo
    "start {start} must not be after end {end}": "start {start} 不能晚于 end {end}",
    "no audit entry {id} in this space; nothing was written": "此记忆空间中没有审计记录 {id}；什么都没有写入",
    "undone: {operation:s}": "撤销了：{operation}",
    "an audit id": "审计编号",
    "{operation:w} {id} changed nothing that can be put back; nothing was written": (
        "{operation} {id} 没有改动可以放回的内容；什么都没有写入"
    ),
    "what {operation:w} {id} stored is no longer there; nothing was written": "{operation} {id} 存入的内容已不在；什么都没有写入",
    "history since {operation:w} {id} was closed, so what changed later is not known; nothing was written": (
        "{operation} {id} 以来的历史已关闭，之后改了什么不得而知；什么都没有写入"
    ),
    "the history up to {closed} was closed; {moment} cannot be looked back at": "{closed} 之前的历史已关闭；无法回看 {moment}",
    "{operation:w} {id} was undone by {by} already; nothing was written": "{operation} {id} 已由 {by} 撤销；什么都没有写入",
    "{operation:w} {id} changed the same later; undo that first. Nothing was written": (
        "{operation} {id} 后来改动了同样的内容；请先撤销它。什么都没有写入"
    ),
    # -------------------------------------------------------------------------------------------- recall
    "only the first {n:d} of {all:d} characters of the query were read": "提问共 {all} 个字符，只读取了前 {n} 个",
    "limit {given:d} was held to {limit:d}": "limit {given} 已降为 {limit}",
    "the query is blank": "提问为空",
    "the filter on {name:s} takes it out: it is {status:w} by {id}": "被{name}筛除：它{status}，取代者是 {id}",
    "the filter on {name:s} takes it out: it is {status:w}": "被{name}筛除：它{status}",
    "the filter on {name:s} takes it out": "被{name}筛除",
    "it is hit {rank:d}": "它是第 {rank} 条结果",
    "it ranks {rank:d} with {score:d}; hit {limit:d} has {last:d}": "它排第 {rank}，得分 {score}；第 {limit} 条得分 {last}",
    "its relevance is {relevance:d}; {least:d} is needed": "它的相关度是 {relevance}；至少需要 {least}",
    "only the {n:d} rarest terms of the query were searched": "只搜索了提问中最罕见的 {n} 个词",
    "more than {seconds:d} s: only the 8 rarest terms of the query were searched": "超过 {seconds} 秒：只搜索了提问中最罕见的 8 个词",
    # --------------------------------------------------------------------------------------------- audit
    "an operation": "操作",
    "no audit entry {id} in this space": "此记忆空间中没有审计记录 {id}",
    "{head} is not a head as audit head prints it": "{head} 不是 audit head 输出的那种链头",
    "entry {n:d} was closed since its hash was kept, and cannot be compared": "审计记录 {n} 的哈希留存之后该记录已关闭，无法比较",
    "entry {n:d}, whose hash was kept, is gone": "留存过哈希的审计记录 {n} 不见了",
    "entry {n:d} has another hash than was kept: the chain was written anew": "审计记录 {n} 的哈希与留存的不同：链被重写过",
    "a target is text, not {value}": "target 应是文字，而不是 {value}",
    "audit entry {id} was changed or does not follow the one before it": "审计记录 {id} 被改动过，或与前一条接不上",
    "entries up to {n:d} are gone, and no entry closes them": "到 {n} 为止的审计记录不见了，且没有记录说明其关闭",
    # ------------------------------------------------------------------------------------------- profiles
    "field must be one of {fields}, not {value}": "field 必须是 {fields} 之一，而不是 {value}",
    "subject must be 'session' or 'speaker', not {value}": "subject 必须是 'session' 或 'speaker'，而不是 {value}",
    "a speaker's profile needs a space opened with a speaker": "发言者画像需要打开记忆空间时指明发言者",
    "action must be set, add or remove, not {value}": "action 必须是 set、add 或 remove，而不是 {value}",
    "fact_key goes with traits and preferences, not with {field}": "fact_key 只用于 traits 和 preferences，不用于 {field}",
    "value must not be empty for {action} {field}": "{action} {field} 的 value 不能为空",
    "preference {slot}: now {value}, before {previous}": "偏好 {slot}：现为 {value}，原为 {previous}",
    "trait {slot}: now {value}, before {previous}": "特征 {slot}：现为 {value}，原为 {previous}",
    # ----------------------------------------------------------------------------------------- candidates
    "the message must be text, not {value}": "消息必须是文字，而不是 {value}",
    "extraction is turned off (candidate_extraction_enabled)": "提取功能已关闭（candidate_extraction_enabled）",
    "a message of 1 to {limit:d} characters is looked at, not {n:d}": "只查看 1 到 {limit} 个字符的消息，而这条有 {n} 个",
    "the message shows injected memories and nothing else": "消息中只有注入的记忆，没有其他内容",
    "holds a credential": "含有凭据",
    "{n:d} more were left out (candidate_max_per_turn is {limit:d})": "另有 {n} 条略去（candidate_max_per_turn 为 {limit}）",
    "selected by {model}": "由 {model} 选取",
    "states a name": "说出了名字",
    "states a preference": "说出了偏好",
    "states a trait": "说出了特征",
    "tells of a decision": "讲到一个决定",
    "tells of a plan": "讲到一个计划",
    "a payload is an object, not {value}": "payload 应是对象，而不是 {value}",
    "a candidate's type must be one of {types}, not {value}": "候选的 type 必须是 {types} 之一，而不是 {value}",
    "a payload holds what JSON can: {error}": "payload 只能包含 JSON 所能表示的内容：{error}",
    "the candidate holds a credential ({kinds:s}); it was not stored": "候选含有凭据（{kinds}）；未存入",
    "{n:d} proposed": "提出了 {n} 条候选",
    "a candidate id is text, not {value}": "候选编号应是文字，而不是 {value}",
    "no candidate {id} in this space; nothing was written": "此记忆空间中没有候选 {id}；什么都没有写入",
    "status must be one of {statuses}, not {value}": "status 必须是 {statuses} 之一，而不是 {value}",
    "say which candidates": "请指明哪些候选",
    "a candidate id": "候选编号",
    "candidate {id} is {status:w}, not pending; nothing was written": "候选 {id} {status}，不是待定；什么都没有写入",
    "{type:w} accepted": "接受了{type}候选",
    "episode {id} ({outcome:w})": "记忆 {id}（{outcome}）",
    "profile: {n:d} added": "画像：新增 {n} 条",
    "marked as seen; nothing was stored": "已标记为看过；没有存入内容",
    "candidate {id} was accepted; undo that instead. Nothing was written": "候选 {id} 已被接受；请改为撤销那次操作。什么都没有写入",
    "{type:w} rejected": "拒绝了{type}候选",
    "{n:d} expired": "{n} 条候选过期",
    "target_scope must be session or speaker, not {value}": "target_scope 必须是 session 或 speaker，而不是 {value}",
    # -------------------------------------------------------------------------------------- consolidation
    "{n:d} more superseded episodes wait for later runs": "另有 {n} 条被取代的记忆留待以后整理",
    "no active episode {ids} in this space that is not a summary itself": "此记忆空间中没有本身不是摘要的有效记忆 {ids}",
    "episode {id} holds a credential ({kinds:s}) and is shown to no model": "记忆 {id} 含有凭据（{kinds}），不会给任何语言模型看",
    "episode {id} cannot be summarised with the others: at most {n:d} episodes of {limit:d} characters together, that hold at one time,"
    " which is not over": "记忆 {id} 不能与其他记忆一起汇总：最多 {n} 条、合计 {limit} 个字符，且须在尚未结束的同一时段内有效",
    "a summary needs two active episodes or more that are old enough and hold at one time": (
        "摘要至少需要两条有效记忆，它们要足够旧，并在同一时段内有效"
    ),
    "the draft holds a credential ({kinds:s}); it was not stored": "草稿含有凭据（{kinds}）；未存入",
    "drafted from {n:d} episodes": "由 {n} 条记忆起草",
    "no proposal {id} in this space; nothing was written": "此记忆空间中没有提案 {id}；什么都没有写入",
    "proposal {id} is {status:w}, not pending; nothing was written": "提案 {id} {status}，不是待定；什么都没有写入",
    "consolidation is turned off; set consolidation_enabled to true before a run": "整理功能已关闭；运行前请先把 consolidation_enabled 设为 true",
    "consolidation is turned off; set consolidation_enabled to true first. Nothing was written": (
        "整理功能已关闭；请先把 consolidation_enabled 设为 true。什么都没有写入"
    ),
    "{n:d} superseded episodes archived": "归档了 {n} 条被取代的记忆",
    "proposal {id} is {status:w}, not pending; draft again. Nothing was written": "提案 {id} {status}，不是待定；请重新起草。什么都没有写入",
    "proposal {id} expired at {time}; draft again. Nothing was written": "提案 {id} 已于 {time} 过期；请重新起草。什么都没有写入",
    "the lineage of the summary is not whole; nothing was written": "摘要的来源不完整；什么都没有写入",
    "summary of {n:d} episodes published": "发布了 {n} 条记忆的摘要",
    "the draft is stale: one of its sources changed, ended or is gone. Draft again; nothing was written": (
        "草稿已失效：有来源发生了变化、已结束或不见了。请重新起草；什么都没有写入"
    ),
    "the draft is stale: its sources no longer hold at one time. Draft again; nothing was written": (
        "草稿已失效：其来源不再于同一时段内有效。请重新起草；什么都没有写入"
    ),
    # ------------------------------------------------------------------------------------ export and import
    "an export is written to an open text file, not to {value}": "导出要写入已打开的文本文件，而不是 {value}",
    "an export is of some of {kinds}, not {value}": "导出内容只能取 {kinds}，而不是 {value}",
    "the import": "导入文件",
    "{n:d} of {all:d} records cannot be taken, so none was: {problems:s} and {more:d} more": (
        "{all} 条记录中有 {n} 条无法导入，因此全部未导入：{problems}，另有 {more} 条"
    ),
    "{n:d} of {all:d} records cannot be taken, so none was: {problems:s}": "{all} 条记录中有 {n} 条无法导入，因此全部未导入：{problems}",
    "{position:d}: {problem:w}": "{position}：{problem}",
    "the import cannot be read: {error}": "无法读取导入文件：{error}",
    "{n:d} {kind:s} records were left out": "略去了 {n} 条记录（{kind}）",
    "{path} cannot be read: {error}": "无法读取 {path}：{error}",
    "{n:d} of {all:d} records": "{all} 条记录中的 {n} 条",
    "{n:d} profile values were erased here and stay out": "{n} 个画像值曾在此处抹除，不再导入",
    "{n:d} episodes, {facts:d} facts": "{n} 条记忆，{facts} 个画像条目",
    "record {position:d}: {id} came before with another text, which was kept": "记录 {position}：{id} 先前已有不同内容，保留了先前的",
    "record {position:d}: {note:s}": "记录 {position}：{note}",
    "record {position:d}: is active, so its successor {id} was left out": "记录 {position}：是有效记忆，因此略去了它的取代者 {id}",
    "record {position:d}: sender_name without a sender_id names nobody and was left out": (
        "记录 {position}：只有 sender_name 而没有 sender_id，无法指明是谁，已略去"
    ),
    "the successor of {n:d} superseded episodes is not here, or is its own (records {positions})": (
        "{n} 条被取代的记忆的取代者不在此处，或就是它自己（记录 {positions}）"
    ),
    "{n:d} summaries were stored without their sources, which are not here: {ids}": "{n} 条摘要存入时没有来源，来源不在此处：{ids}",
    "older than what is known": "比已知的更旧",
    "expected a JSON or JSON Lines export of ltm, LongTermMemory or LivingMemory": (
        "应为 ltm、LongTermMemory 或 LivingMemory 的 JSON 或 JSON Lines 导出"
    ),
    "the file is empty; {expected:w}": "文件是空的；{expected}",
    "the key {key} is given twice": "键 {key} 重复给出",
    "a number of {n:d} digits": "一个 {n} 位的数",
    "the number {number} is too large": "数 {number} 太大",
    "{name} is not a number of JSON": "{name} 不是 JSON 的数",
    "the line is longer than {n:d} bytes": "该行超过 {n} 字节",
    "not UTF-8 at byte {n:d}": "第 {n} 字节处不是 UTF-8",
    "not JSON: {error:s} at character {n:d}": "不是 JSON：第 {n} 个字符处，{error}",
    "nested too deeply": "嵌套太深",
    "Expecting value": "应为一个值",
    "Expecting property name enclosed in double quotes": "应为双引号括起的属性名",
    "Expecting ':' delimiter": "应为“:”",
    "Expecting ',' delimiter": "应为“,”",
    "Extra data": "有多余的内容",
    "Unterminated string starting at": "此处开始的字符串没有结束",
    "Invalid control character at": "有不允许的控制字符",
    "Illegal trailing comma before end of object": "对象末尾有多余的逗号",
    "Illegal trailing comma before end of array": "列表末尾有多余的逗号",
    "the file is unreadable: {problem:s}; {expected:w}": "无法读取文件：{problem}；{expected}",
    "nested more than {n:d} levels deep": "嵌套超过 {n} 层",
    "{value} begins with half a surrogate pair": "{value} 以半个代理对开头",
    "a list": "列表",
    "an object": "对象",
    "the line must hold an object, not {value:s}": "该行必须是一个对象，而不是 {value}",
    "type {value} is not text": "type {value} 不是文字",
    "type is missing": "缺少 type",
    "{name:n}: {problem:w}": "{name}：{problem}",
    "{n:d} {what:w}": "{n} 条{what}",
    "{action:w} {subject:w} {field:w}": "{action}{subject}的{field}",
    "{action:w} {subject:w} {field:w} {value}": "{action}{subject}的{field}：{value}",
    "the JSON has an unknown shape; {expected:w}": "JSON 的结构无法识别；{expected}",
    "unknown format {name}; {expected:w}": "未知格式 {name}；{expected}",
    "{name:n} must be a list, not {value:s}; {expected:w}": "{name} 必须是列表，而不是 {value}；{expected}",
    "version {version} is unknown; expected {known:d}": "版本 {version} 未知；应为 {known}",
    "written by a newer ltm: version {version:d}; expected {known:d}": "由更新的 ltm 写成：版本 {version}；应为 {known}",
    "{name:n} must be an object, not {value:s}": "{name} 必须是对象，而不是 {value}",
    "{name:n} must be a list, not {value:s}": "{name} 必须是列表，而不是 {value}",
    "{what:n} {value} has {n:d} characters; the limit is {limit:d}": "{what} {value} 有 {n} 个字符，上限是 {limit}",
    "sender_id {value} holds a character that cannot be stored": "sender_id {value} 含有无法存储的字符",
    "{name:n} must hold texts, not {value:s}": "{name} 只能包含文字，而不是 {value}",
    "{what:n} {value} is not an ISO-8601 time like 2026-12-08T09:00:00Z": "{what} {value} 不是 2026-12-08T09:00:00Z 这样的 ISO-8601 时间",
    "{what:n} {value} is not an ISO-8601 time with a zone, like 2026-12-08T09:00:00+08:00": (
        "{what} {value} 不是 2026-12-08T09:00:00+08:00 这样带时区的 ISO-8601 时间"
    ),
    "{what:n} {value} is not a number": "{what} {value} 不是数",
    "an episode": "记忆",
    "content {value} is blank": "content {value} 是空白",
    "content is missing": "缺少 content",
    "tags: there are {n:d}; the limit is {limit:d}": "tags：有 {n} 个，上限是 {limit}",
    "tags: {tag} has {n:d} characters; the limit is {limit:d}": "tags：{tag} 有 {n} 个字符，上限是 {limit}",
    "pinned must be true or false, not {value:s}": "pinned 必须是 true 或 false，而不是 {value}",
    "a memory": "记忆",
    "the memory has no text; one of {fields} must hold it": "记忆没有文字；必须放在 {fields} 之一中",
    "{what:n} {value} is not a time in seconds since 1970": "{what} {value} 不是自 1970 年起的秒数",
    "a profile": "画像",
    "subject must be session or speaker, not {value:s}": "subject 必须是 session 或 speaker，而不是 {value}",
    "sender_id is missing; a speaker's profile needs it": "缺少 sender_id；发言者画像需要它",
    "fact {n:d}": "第 {n} 个条目",
    "fact {n:d}: ": "第 {n} 个条目：",
    "fact {n:d}: {place} has a current value already, not {value} too": "第 {n} 个条目：{place} 已有当前值，不能再有 {value}",
    "{where:s}field must be one of {fields}, not {value:s}": "{where}field 必须是 {fields} 之一，而不是 {value}",
    "{where:s}status must be one of {statuses}, not {value:s}": "{where}status 必须是 {statuses} 之一，而不是 {value}",
    "{where:s}slot {slot}: only traits and preferences have slots": "{where}slot {slot}：只有 traits 和 preferences 有槽位",
    "{where:s}ended_at {time}: a current value has no end": "{where}ended_at {time}：当前值没有终止时间",
    "{where:s}confidence must be a number from 0 to 1, not {value:s}": "{where}confidence 必须是 0 到 1 之间的数，而不是 {value}",
    "profile_slots.{field}.{slot}.history: status must be superseded or removed, not 'current'": (
        "profile_slots.{field}.{slot}.history：status 必须是 superseded 或 removed，而不是 'current'"
    ),
    "an audit entry": "审计记录",
    "operation is missing": "缺少 operation",
    # ----------------------------------------------------------------------------------------- injection
    "budget must be {least:d} to {most:d} characters, not {value}": "budget 必须是 {least} 到 {most} 个字符，而不是 {value}",
    "{n:d} memories say what the profile says, and were left out": "{n} 条记忆与画像内容重复，已略去",
    "no snapshot was kept: something was erased meanwhile": "没有留下快照：期间有内容被抹除",
    "no snapshot was kept: {error:s}": "没有留下快照：{error}",
    "{n:d} cut short": "截短 {n} 行",
    "{n:d} left out": "略去 {n} 行",
    "of {n:d} lines {parts:s}, to fit {budget:d} characters": "共 {n} 行，为不超过 {budget} 个字符：{parts}",
    "{cut:d} cut short, {n:d} left out": "截短 {cut} 行、略去 {n} 行",
    # -------------------------------------------------------------------------------------------- erasure
    "{path} is not a file; nothing was erased": "{path} 不是文件；什么都没有抹除",
    "{path} is the database itself; nothing was erased": "{path} 就是数据库本身；什么都没有抹除",
    "{path} cannot be written to; nothing was erased": "{path} 无法写入；什么都没有抹除",
    "{path} is fenced: {reason:s}; nothing was erased": "{path} 已写入锁定：{reason}；什么都没有抹除",
    "say which speaker to erase, or everything": "请指明要抹除哪位发言者，或抹除全部",
    "a copy": "副本",
    "nobody of the id {id} is known here{named:s}; nothing was erased": "此处没有编号为 {id} 的人{named}；什么都没有抹除",
    "; {ids} is called so": "（{ids} 叫这个名字）",
    "the file could not be written anew ({error:s}); it is tried again": "文件未能重写（{error}）；会再次尝试",
    "{name}, a copy from before a migration, was deleted": "已删除迁移前的副本 {name}",
    "{n:d} texts were not looked for: under {bytes:d} bytes, or beyond the {longest:d} longest": (
        "{n} 段文字没有查找：不足 {bytes} 字节，或不在最长的 {longest} 段之内"
    ),
    "a reader keeps the write-ahead log; the next open empties it, or the next write once the reader is gone": (
        "有读取者占用预写日志；下次打开时清空，或在读取者离开后的下次写入时清空"
    ),
    "{path}: {n:d} rows erased": "{path}：抹除了 {n} 行",
    "{n:d} of {table:w}": "{table} {n} 行",
    "rows that were not to be erased hold the same words: {rows:s}": "不在抹除范围内的行含有同样的文字：{rows}",
    # --------------------------------------------------------------------------------------------- checks
    "integrity: {problem}": "完整性：{problem}",
    "foreign key: {row}": "外键：{row}",
    "episode {id} has {n:d} terms and not {stored:d}": "记忆 {id} 有 {n} 个词，而不是 {stored} 个",
    "episode {id} is not found by its rarest term": "用最罕见的词找不到记忆 {id}",
    "{n:d} episodes are not in the term index": "{n} 条记忆不在词索引中",
    "{n:d} rows of the term index have no episode": "词索引中有 {n} 行没有对应的记忆",
    "{n:d} vectors have no episode": "{n} 个向量没有对应的记忆",
    "{n:d} vectors have a wrong size": "{n} 个向量的大小不对",
    "{n:d} vectors have no embedder": "{n} 个向量没有对应的嵌入模型",
    "{n:d} episodes have neither a vector nor a job": "{n} 条记忆既没有向量也没有任务",
    "{n:d} jobs have no episode": "{n} 个任务没有对应的记忆",
    "{n:d} spaces count their episodes wrongly": "{n} 个记忆空间的记忆计数不对",
    "{n:d} tags have no episode": "{n} 个标签没有对应的记忆",
    "{n:d} revisions belong to no operation": "{n} 个历史版本不属于任何操作",
    "{n:d} vectors are not finite and of length 1": "{n} 个向量不是有限的单位向量",
    "{n:d} speakers are not found by all their names, or by more": "{n} 位发言者不能用其全部名字找到，或能用多余的名字找到",
    "could not be looked at: {error:s}": "无法检查：{error}",
    "every page, and every index, agrees with its table": "每一页和每个索引都与其表一致",
    "{n:d} rows point at nothing": "{n} 行指向不存在的内容",
    "every reference leads somewhere": "每个引用都有所指",
    "space {space:d}: {n:d} episodes, {rows:d} in the word index": "记忆空间 {space}：{n} 条记忆，词索引中 {rows} 条",
    "every episode is found by its words; counters agree": "每条记忆都能用其词语找到；计数一致",
    "no embedder was ever used: recall goes by words": "从未用过嵌入模型：按词语检索",
    "{n:d} of {all:d} episodes have a vector of the model that serves": "{all} 条记忆中有 {n} 条具有当前模型的向量",
    "{n:d} entries; every chain is whole": "{n} 条审计记录；每条链都完整",
    "{fingerprint} ({dim:d} dimensions) is {state:w}": "{fingerprint}（{dim} 维）：{state}",
    "this process uses {fingerprint}, which the file holds no vectors of": "本进程使用 {fingerprint}，文件中没有它的向量",
    "{n:d} episodes wait for a vector, {failed:d} of them failed before ({error:s})": (
        "{n} 条记忆等待生成向量，其中 {failed} 条曾失败（{error}）"
    ),
    "{n:d} episodes wait for a vector": "{n} 条记忆等待生成向量",
    "{n:d} rows wait to be indexed": "{n} 行等待索引",
    "nothing waits to be indexed": "没有等待索引的内容",
    "the file was indexed by another version of the word cutter; the next search reindexes it": (
        "文件由另一版本的分词器索引；下次搜索时会重建索引"
    ),
    "fence {id:d} on {key:s}: {reason:s}": "写入锁定 {id}，范围 {key}：{reason}",
    "the whole file": "整个文件",
    "{operation:s} has begun and not ended ({progress:s})": "{operation}已开始而未结束（{progress}）",
    "no step yet": "尚未完成任何一步",
    "no fence stands": "没有写入锁定",
    "{n:d} bytes, {free:d} of them free inside": "{n} 字节，其中 {free} 字节空闲",
    "the write-ahead log has {n:d} bytes": "预写日志有 {n} 字节",
    "the write-ahead log has {n:d} bytes: a reader keeps it from being folded in": "预写日志有 {n} 字节：有读取者使其无法并入",
    "{n:d} bytes are free on the disk": "磁盘空闲 {n} 字节",
    "nothing is stored yet": "还没有存入任何内容",
    "the newest episode is found by its words": "最新的记忆能用其词语找到",
    "the newest episode is not found by its words": "最新的记忆不能用其词语找到",
    "no vector extension could be loaded: recall goes by words": "无法加载向量扩展：按词语检索",
    "vectors are compared": "向量可以比较",
    "a vector is {distance} away from itself": "一个向量与自己的距离是 {distance}",
    "two probe episodes were stored in two spaces": "在两个记忆空间中存入了两条探测记忆",
    "another space's episode was returned": "返回了另一个记忆空间的记忆",
    "its own episode and no other": "只有自己的记忆，没有别的",
    "nothing was returned": "什么都没有返回",
    "another space's episode could be deleted": "另一个记忆空间的记忆可以被删除",
    "probe spaces are left behind": "留下了探测用的记忆空间",
    "nothing was left behind": "没有留下任何内容",
    "skipped: {error:s}": "已跳过：{error}",
    # --------------------------------------------------------------------------------------- command line
    "there is no action {name}": "没有操作 {name}",
    "the input of {name} is not a JSON object: {error}": "{name} 的输入不是 JSON 对象：{error}",
    "Say which file: --db FILE (or LTM_DB).": "请指明文件：--db FILE（或 LTM_DB）。",
    "{path} does not exist; `ltm --db {it} init` makes it": "{path} 不存在；用 `ltm --db {it} init` 创建",
    "Say which bot: --bot ID (or LTM_BOT). An empty text is a bot of its own.": (
        "请指明机器人：--bot ID（或 LTM_BOT）。空文字也是一个独立的机器人。"
    ),
    "Say which chat: --chat group:ID or --chat person:ID (or LTM_CHAT).": (
        "请指明会话：--chat group:ID 或 --chat person:ID（或 LTM_CHAT）。"
    ),
    "nobody answered the question, so nothing was done; --yes answers it": "没有人回答确认，因此什么都没有做；用 --yes 代为回答",
    "nothing was done": "什么都没有做",
    "{path} exists; choose another name or say --overwrite": "{path} 已存在；请另选名称，或加上 --overwrite",
    "{path} is no ordinary file; it was left as it is": "{path} 不是普通文件；已保持原样",
    "interrupted; {fence:s}": "已中断；{fence}",
    "interrupted; nothing was stored": "已中断；没有存入内容",
    "{path} exists; the demonstration wants a new file": "{path} 已存在；演示需要一个新文件",
    "{path} cannot be written: {error}": "无法写入 {path}：{error}",
    # ------------------------------------------------------------------------------------------- web console
    "a request is a JSON object": "请求应是 JSON 对象",
    "there is no such endpoint": "没有这个接口",
    "choose a memory space first": "请先选择记忆空间",
    "a memory space is named by bot, launcher_type and launcher_id": "记忆空间由 bot、launcher_type 和 launcher_id 指明",
    "a speaker is named by id and name": "发言者由 id 和 name 指明",
    "this host has no options of its own": "当前宿主没有自己的选项",
    "the file is open for reading only": "文件以只读方式打开",
    "a page names no file of this machine; use the command line": "页面不能指定本机的文件；请使用命令行",
    "{name} is running already; wait until it has ended": "{name} 已在运行；请等它结束",
    "too many jobs are running; wait until one has ended": "运行中的任务太多；请等其中一个结束",
    "the token is not right; open the link that `ltm serve` printed": "令牌不正确；请打开 `ltm serve` 输出的链接",
    "{host} is not this machine alone; say --allow-remote if others are meant to reach it": (
        "{host} 不只限于本机；若要让其他机器访问，请加上 --allow-remote"
    ),
    "cannot listen on {host} port {port:d}: {error}": "无法监听 {host} 的端口 {port}：{error}",
    # ------------------------------------------------------------------------------------------------ plugin
    "{name:n} must be one of {choices}, not {value}": "{name} 必须是 {choices} 之一，而不是 {value}",
    "{name:n} must be a number, not {value}": "{name} 必须是数，而不是 {value}",
    "{name:n} must be from {least:d} to {most:d}, not {value}": "{name} 必须在 {least} 到 {most} 之间，而不是 {value}",
    "{error:w}; {value} is used": "{error}；现采用 {value}",
    "no option is called {name}; there are {names}": "没有名为 {name} 的选项；可用的有 {names}",
    "episodes stay in the chat, or are shared by all chats of the bot": "记忆只留在本会话，或由机器人的所有会话共享",
    "the host's model that makes vectors; empty: words alone, or the local one if installed": (
        "宿主提供的向量模型；留空：只按词语检索，若装有本地模型则用本地模型"
    ),
    "days after which a memory counts half as recent": "记忆的新近程度减半所需的天数",
    "memories put into a prompt": "注入提示词的记忆条数",
    "auto and hybrid go by words and meaning, vector by meaning": "auto 和 hybrid 按词语和语义检索，vector 只按语义向量检索",
    "weight of meaning against words": "语义相对于词语的权重",
    "an id, tag or name that is asked for exactly comes first": "与所问的编号、标签或名字完全一致的排在最前",
    "the host's language model that selects quotes; empty: rules": "宿主提供的语言模型，用于选取引文；留空：使用规则",
    "the host's language model that drafts summaries; empty: archival alone": "宿主提供的语言模型，用于起草摘要；留空：只做归档",
    "age at which an episode may be summarised": "记忆可被汇总所需的天数",
    "traits of a profile that are shown": "画像中显示的特征数",
    "preferences of a profile that are shown": "画像中显示的偏好数",
    "no folder for the memory file can be written to; tried {folders}": "没有可写入的文件夹来存放记忆文件；尝试过 {folders}",
    "the memory file could not be opened": "无法打开记忆文件",
    "{why:w}; it is asked again in {seconds:d} s": "{why}；{seconds} 秒后再次调用",
    "the embedding model of the host did not answer within {seconds:d} s": "宿主的嵌入模型在 {seconds} 秒内没有回答",
    "the embedding model of the host failed: {error:s}": "宿主的嵌入模型出错：{error}",
    "the embedding model of the host cannot be used: {error:s}": "宿主的嵌入模型无法使用：{error}",
    "it gave {n:d} vectors for {texts:d} texts": "它对 {texts} 段文字给出了 {n} 个向量",
    "it gives vectors of {n:d} numbers where it gave {dim:d}": "它给出 {n} 维的向量，而先前是 {dim} 维",
    "it gave a vector with something that is not a finite number": "它给出的向量含有不是有限数的内容",
    "{n:d} memories wait for a vector: {error:s}": "{n} 条记忆等待生成向量：{error}",
    "the host did not say which chat this is, so no memory is used": "宿主没有说明这是哪个会话，因此不使用记忆",
    "memory took longer than {seconds:d} s, and the turn went on without it": "记忆耗时超过 {seconds} 秒，本轮对话没有用到记忆",
    "this memory has a knowledge base already; delete that one first (memories are kept)": (
        "此记忆库已有知识库；请先删除那一个（记忆会保留）"
    ),
    "the file does not name the chat it belongs to; it must be like {example}": "文件没有指明它属于哪个会话；应写成 {example} 的形式",
    "a page inside a host names no model; configure one there": "宿主内的页面不能指定模型；请在宿主中配置",
    "no document {name} was taken into this space, or nothing is left of it": "此记忆空间没有收录文档 {name}，或其内容已全部不在",
    "this takes longer than {seconds:d} s; it goes on meanwhile": "这需要 {seconds} 秒以上；操作仍在继续",
    "the model that selects candidates failed, rules are used: {error:s}": "选取候选的语言模型出错，改用规则：{error}",
    "top_k must be 1 to {limit:d}, not {value}": "top_k 必须是 1 到 {limit}，而不是 {value}",
    # ------------------------------------------------------------------------------------ fields of actions
    "The episode.": "记忆的编号。",
    "Only in this state; several may be given.": "只要这种状态的；可给出多个。",
    "Only what this speaker said.": "只要这位发言者说的。",
    "Only what a speaker of this name said.": "只要叫这个名字的发言者说的。",
    "Only from this source.": "只要来自这个出处的。",
    "Only with this tag; several: with all of them.": "只要带此标签的；给出多个时须全部具备。",
    "Stored or said at this time or later.": "在此时间或之后存入或说出。",
    "Stored or said at this time or earlier.": "在此时间或之前存入或说出。",
    "At least this important, 1 to 5.": "重要度至少为此，1 到 5。",
    "Only what is valid at this time.": "只要在此时间有效的。",
    "Also what is no longer valid.": "也包括已经失效的。",
    "As it was stored at this time.": "按此时间存储的样子。",
    "The memory, exactly as it is to be kept.": "记忆内容，按原样保存。",
    "How much it matters, 1 to 5.": "重要程度，1 到 5。",
    "A tag; may be given several times.": "标签；可给出多次。",
    "An episode that this replaces; may be given several times.": "被它取代的记忆；可给出多次。",
    "Where it comes from.": "它的出处。",
    "The message or document it was read from.": "它出自的消息或文档。",
    "Who vouches for it.": "由谁担保。",
    "When it happens; ISO-8601 with zone.": "何时发生；带时区的 ISO-8601 时间。",
    "From when it holds; with zone.": "何时起有效；带时区。",
    "Until when it holds, exclusive; with zone.": "有效至何时，不含该时刻；带时区。",
    "It never fades.": "永不淡化。",
    "The same key answers the first result again.": "相同的键会再次得到第一次的结果。",
    "What is asked.": "要问的内容。",
    "At most so many, 1 to {limit:d}.": "最多条数，1 到 {limit}。",
    "At most so many, 1 to 50.": "最多条数，1 到 50。",
    "Weigh a signal otherwise, as dense=0.3; several may be given.": "改变某个信号的权重，如 dense=0.3；可给出多个。",
    "a weight is NAME=NUMBER with a name of {names}, not {value}": "权重应写成 NAME=NUMBER，名称取自 {names}，而不是 {value}",
    "Which come first.": "哪些排在前面。",
    "The episodes, up to {limit:d}.": "记忆的编号，最多 {limit} 个。",
    "Move them to this state.": "把它们改为这种状态。",
    "Whether they never fade.": "它们是否永不淡化。",
    "A tag that they get.": "给它们加上的标签。",
    "A tag that they lose.": "从它们去掉的标签。",
    "Minutes east of UTC at which days begin.": "一天从何时开始：UTC 以东的分钟数。",
    "What was asked.": "当时问的内容。",
    "As given to recall.": "与 recall 时相同。",
    "Rows on a page, 1 to {limit:d}.": "每页行数，1 到 {limit}。",
    "Go on where a page ended.": "从上一页结束处继续。",
    "The new text.": "新的内容。",
    "1 to 5.": "1 到 5。",
    "A tag; given tags replace all there are.": "标签；给出的标签会替换现有的全部标签。",
    "When it happens; with zone; '' clears it.": "何时发生；带时区；'' 表示清除。",
    "From when it holds; with zone; '' clears it.": "何时起有效；带时区；'' 表示清除。",
    "Until when it holds, exclusive; with zone; '' clears it.": "有效至何时，不含该时刻；带时区；'' 表示清除。",
    "Whether it never fades.": "是否永不淡化。",
    "Refuse if it is at another version by now.": "若现在已是其他版本则拒绝。",
    "The episode that replaces it.": "取代它的记忆。",
    "Only count.": "只计数。",
    "The audit entry, as audit list shows it.": "审计记录的编号，见 audit list。",
    "The earlier moment.": "较早的时刻。",
    "The later one; default: now.": "较晚的时刻；默认为现在。",
    "Whose; default: the session for notes, else the speaker.": "谁的画像；默认 notes 属于会话，其余属于发言者。",
    "name, traits, preferences or notes.": "name、traits、preferences 或 notes。",
    "The value.": "值。",
    "The slot of a trait or preference; it holds one value at a time.": "特征或偏好的槽位；同一时间只有一个值。",
    "A value that the new one replaces.": "被新值取代的旧值。",
    "The value; a slot, the name and all notes need none.": "值；移除槽位、名字或全部备注时不需要。",
    "The slot of a trait or preference.": "特征或偏好的槽位。",
    "Also what was so before.": "也包括以前的值。",
    "Only this operation.": "只要这种操作。",
    "Only what concerns this id.": "只要与此编号有关的。",
    "What audit head printed earlier and was kept elsewhere; default: none.": "先前由 audit head 输出、保存在别处的链头；默认没有。",
    "Entries older than this.": "比此时间更早的审计记录。",
    "What the user said.": "用户说的话。",
    "A language model that selects: http:URL#MODEL. Default: rules.": "负责选取的语言模型：http:URL#MODEL。默认使用规则。",
    "Only these.": "只要这些。",
    "One or several; all of them or none.": "一个或多个；要么全部，要么一个也不。",
    "The language model that drafts: http:URL#MODEL.": "负责起草的语言模型：http:URL#MODEL。",
    "Episodes to summarise; default: the oldest active ones.": "要汇总的记忆；默认取最旧的有效记忆。",
    "Publish this proposal; without one, archive what was superseded.": "发布此提案；不给出时，归档被取代的记忆。",
    "The proposal.": "提案的编号。",
    "What to export; default: everything.": "要导出的内容；默认全部。",
    "Only episodes in this state; default: all.": "只要这种状态的记忆；默认全部。",
    "The export itself, JSON or JSON Lines.": "导出内容本身，JSON 或 JSON Lines。",
    "Leave out records that cannot be taken instead of refusing all.": "略去无法导入的记录，而不是全部拒绝。",
    "Bring back texts that were erased here.": "重新导入曾在此处抹除的文字。",
    "Take it in as this document, to be deleted as one later.": "作为此文档导入，以后可整体删除。",
    "The document.": "文档的编号。",
    "Erase this speaker.": "抹除这位发言者。",
    "Erase all that this scope holds.": "抹除此范围内的全部内容。",
    "Look for the texts in every byte of the files, and say what was looked for.": "在文件的每个字节中查找这些文字，并说明查找了什么。",
    "A copy of the file to be treated the same way.": "要同样处理的文件副本。",
    "Why; whoever is stopped reads it.": "原因；被阻止的人会看到。",
    "Block the whole file, not this chat.": "锁定整个文件，而不只是此会话。",
    "The fence.": "写入锁定的编号。",
    "First rebuild what is derived; base tables are never touched.": "先重建派生内容；绝不触碰基本表。",
    "The message.": "消息。",
    "At most so many memories.": "最多记忆条数。",
    "Characters of both blocks; default: the setting injection_budget.": "两个文字块的总字符数；默认取设置 injection_budget。",
    "The setting.": "设置的名称。",
    "A whole number, true or false.": "整数、true 或 false。",
    # --------------------------------------------------------------------------------------------- actions
    "Store an episode.": "存入一条记忆。",
    "Find what is relevant to a question.": "查找与问题相关的记忆。",
    "Say why an episode is not in the answer to a question.": "说明一条记忆为什么不在问题的结果中。",
    "Show an episode whole.": "完整显示一条记忆。",
    "List episodes, newest first.": "列出记忆，最新的在前。",
    "Change what is given of an episode; the rest stays.": "更改记忆中给出的部分；其余不变。",
    "Keep an episode but recall it no more.": "保留记忆，但不再检索到它。",
    "Make an episode active again.": "使记忆重新有效。",
    "Let an active episode replace another one of the same speaker.": "用一条有效记忆取代同一发言者的另一条。",
    "Delete one episode. Its history is kept, so undo brings it back; erase leaves nothing.": (
        "删除一条记忆。历史会保留，因此撤销可以找回；抹除则不留任何内容。"
    ),
    "Delete every episode that a filter lets pass, in any state unless a status is given. Undo brings them back.": (
        "删除符合筛选条件的所有记忆；不指定状态时包括各种状态。撤销可以找回。"
    ),
    "Delete every episode that the filter lets pass?": "删除符合筛选条件的所有记忆？",
    "Show every state that an episode was in, also of a forgotten one.": "显示一条记忆有过的所有状态，包括已遗忘的。",
    "Put back what an operation changed, unless a later one changed the same.": "还原一次操作的改动，除非后来的操作改动了同样的内容。",
    "Say what differs between two moments.": "说明两个时刻之间有什么差异。",
    "Show the profiles of the chat and of the speaker.": "显示会话和发言者的画像。",
    "Set a value; in a slot it supersedes the one before, without a slot all of the field.": (
        "设定一个值；有槽位时取代该槽位原来的值，没有槽位时取代整栏。"
    ),
    "Add a value beside the others.": "在其他值之外新增一个值。",
    "Remove a value, a slot, the name, or all notes.": "移除一个值、一个槽位、名字或全部备注。",
    "List what was done in this chat, newest first.": "列出此会话中做过的操作，最新的在前。",
    "Print every entry, oldest first; that it was exported becomes the next one.": (
        "输出全部审计记录，最旧的在前；这次导出会成为下一条记录。"
    ),
    "Recompute the chain of hashes of this chat; exit status 1 if an entry was changed, removed or moved.": (
        "重新计算此会话的哈希链；有记录被更改、移除或移动时退出状态为 1。"
    ),
    "Print number and hash of the newest entry, to be kept elsewhere and given to audit verify.": (
        "输出最新审计记录的序号和哈希，可保存在别处并交给 audit verify。"
    ),
    "Let go of old entries; the hash of the last stays, and the chain goes on from it. Export them first.": (
        "丢弃旧的审计记录；保留最后一条的哈希，链由此继续。请先导出。"
    ),
    "Let go of the older entries and of the history they own?": "丢弃较旧的审计记录及其所属的历史？",
    "Look for memories in a message and keep them as candidates.": "在消息中寻找记忆，并作为候选保留。",
    "List what waits for a decision, newest first.": "列出等待决定的候选，最新的在前。",
    "Make memory of candidates; all of them or none. Each can be undone.": "把候选变为记忆；要么全部，要么一个也不。每一项都可以撤销。",
    "Turn down candidates; they stay listed as rejected.": "拒绝候选；它们仍以已拒绝列出。",
    "Show what a run would archive and a draft would summarise. Writes nothing.": (
        "显示整理会归档什么、起草会汇总什么。不写入任何内容。"
    ),
    "Let a language model summarise episodes, and keep that as a proposal for one use.": (
        "让语言模型汇总记忆，并作为一次性的提案保留。"
    ),
    "List proposals with their sources, newest first.": "列出提案及其来源，最新的在前。",
    "Archive what was superseded, or publish a proposal.": "归档被取代的记忆，或发布一个提案。",
    "Turn down a proposal; its text goes.": "拒绝一个提案；其文字会删除。",
    "Name what a summary was drawn from, and what was drawn from an episode.": "列出摘要的来源，以及由一条记忆得出的摘要。",
    "Export profiles, episodes and audit of the space.": "导出此记忆空间的画像、记忆和审计。",
    "Take an export into this space: ours, LongTermMemory's or LivingMemory's. The same file again adds nothing.": (
        "把导出文件导入此记忆空间：本程序、LongTermMemory 或 LivingMemory 的均可。重复导入同一文件不会新增内容。"
    ),
    "Delete every episode that was taken in with a document.": "删除随某个文档导入的所有记忆。",
    "Make the blocks that a prompt would get for a message, and keep a snapshot.": "生成一条消息会注入提示词的文字块，并保留快照。",
    "Show what was put into the last prompts of this chat, newest first.": "显示此会话最近的提示词中注入了什么，最新的在前。",
    "Remove a speaker, or all that the scope holds, so that no byte of it is left. It cannot be undone.": (
        "移除一位发言者或此范围内的全部内容，不留一个字节。无法撤销。"
    ),
    "Erase it for good? This cannot be undone.": "永久抹除？此操作无法撤销。",
    "List every space of the file with its counts.": "列出文件中的所有记忆空间及其计数。",
    "Count what the file holds.": "统计文件中的内容。",
    "Prove on this file that one chat cannot see another's memory; leaves nothing behind. Exit status 1 if it can.": (
        "在此文件上证明一个会话看不到另一个会话的记忆；不留任何痕迹。若能看到则退出状态为 1。"
    ),
    "Look at everything: pages, index, vectors, audit, jobs, fences, disk. Exit status 1 on an error.": (
        "检查一切：页、索引、向量、审计、任务、写入锁定、磁盘。有错误时退出状态为 1。"
    ),
    "Make the vectors that are missing. Stopped in between, it goes on where it was.": "生成缺少的向量。中途停止后，会从停下处继续。",
    "List the blocks on writes that stand.": "列出现有的写入锁定。",
    "Block writes to this chat, or to the whole file, until the fence is cleared. Reading goes on.": (
        "阻止写入此会话或整个文件，直到解除写入锁定。读取不受影响。"
    ),
    "Let writes to this chat, or to the whole file, go on, once you have looked at what the fence was about.": (
        "查明写入锁定的原因之后，允许继续写入此会话或整个文件。"
    ),
    "no standing fence {id:d} on this chat or on the whole file": "此会话或整个文件没有编号为 {id} 的写入锁定",
    "Count episodes by day, status and importance.": "按日期、状态和重要度统计记忆。",
    "List who spoke, the last one first.": "列出发言者，最近发言的在前。",
    "Change several episodes in one step that undo takes back: all of them or none.": (
        "一步更改多条记忆，可用撤销还原：要么全部，要么一个也不。"
    ),
    "List the settings of the file.": "列出文件的设置。",
    "Change a setting of the file.": "更改文件的一项设置。",
}
