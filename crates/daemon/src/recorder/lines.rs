//! A recording as text, one JSON object a line, and back: `docs/formats.md` says what it holds.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use shiftwork_live::standing::{Fact, FactKind};
use shiftwork_model::{CpuId, CpuSet, Priority, Span, TaskId};

use super::{Life, Missed, Noted, Own, Recording, Tale, Terms, words};

/// Changes when a key changes its meaning.
const SCHEMA_VERSION: u64 = 1;

/// No task has such a number.
const TASKS_MAX: u64 = 1 << 16;

/// What a fact takes at most, beside a name.
pub(super) const LINE_MAX: usize = 150;

/// Why a text is no recording: which line, what is wrong there, and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinesError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for LinesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}: {}; what `shiftwork record` prints, or the agent has kept, would be accepted",
            self.line, self.reason
        )
    }
}

impl std::error::Error for LinesError {}

/// The first line, which says what the others are about, and of a miss its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// When it was recorded: ns since 1970.
    pub unix_ns: u64,
    /// For how long, in ns.
    pub span_ns: u64,
    /// Where the agent keeps records of misses, if that was said.
    pub folder: Option<String>,
    /// Whose miss it was kept for, and the cause; `None`: it was asked for.
    pub missed: Option<(String, String)>,
}

impl Head {
    /// Reads the first line of a recording; `None` if it is none.
    pub fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let missed = &value["missed"];
        let text = |of: &Value| of.as_str().map(str::to_owned);
        Some(Self {
            unix_ns: value["unix_ns"].as_u64()?,
            span_ns: value["until_ns"]
                .as_u64()?
                .checked_sub(value["since_ns"].as_u64()?)?,
            folder: text(&value["folder"]),
            missed: text(&missed["name"]).zip(text(&missed["cause"])),
        })
    }
}

/// The instant of the world's clock as people write it, in UTC.
pub fn utc(unix_ns: u64) -> String {
    let at = UNIX_EPOCH + Duration::from_nanos(unix_ns);
    humantime::format_rfc3339_millis(at).to_string()
}

impl Recording {
    /// All of it, a line for each fact; `folder` is where records of misses are kept.
    pub fn lines(&self, folder: Option<&str>) -> String {
        let names: BTreeMap<u32, String> = self
            .lives
            .iter()
            .map(|(&id, it)| (id, Value::from(it.name.as_str()).to_string()))
            .collect();
        let mut text = self.head(folder).to_string();
        text.push('\n');
        for (&id, life) in &self.lives {
            for terms in &life.terms {
                text.push_str(&task(id, life, terms).to_string());
                text.push('\n');
            }
        }
        let mut others: Vec<(u64, Value)> = self
            .misses
            .iter()
            .map(|it| (it.due_ns, self.miss(it)))
            .collect();
        others.extend(self.own.iter().map(|own| (own.at_ns(), own_line(own))));
        others.sort_by_key(|(at_ns, _)| *at_ns);
        let mut others = others.into_iter().peekable();
        for noted in &self.facts {
            while let Some((_, other)) = others.next_if(|(at_ns, _)| *at_ns < noted.fact.at_ns) {
                text.push_str(&other.to_string());
                text.push('\n');
            }
            write_fact(&mut text, noted, &names);
        }
        for (_, other) in others {
            text.push_str(&other.to_string());
            text.push('\n');
        }
        text
    }

    fn head(&self, folder: Option<&str>) -> Value {
        let mut head = json!({
            "what": "record",
            "schema_version": SCHEMA_VERSION,
            "agent": self.agent,
            "policy": self.policy,
            "cpus": self.cpus.to_string(),
            "since_ns": self.since_ns,
            "until_ns": self.until_ns,
            "unix_ns": self.unix_ns,
            "utc": utc(self.unix_ns),
        });
        if let Some(folder) = folder {
            head["folder"] = folder.into();
        }
        if let Some(missed) = &self.missed {
            let mut line = self.miss(missed);
            let tale = Tale::of(self);
            if let Some(told) = tale.job(missed).and_then(|job| tale.explain(job)) {
                line["cause"] = told.cause().into();
                line["text"] = told.text().into();
            }
            head["missed"] = line;
        }
        head
    }

    fn miss(&self, missed: &Missed) -> Value {
        let mut line = json!({
            "at_ns": missed.due_ns,
            "life": missed.life,
            "what": "missed",
            "began_ns": missed.began_ns,
        });
        if let Some(life) = self.lives.get(&missed.life) {
            line["task"] = life.task.index().into();
            line["name"] = life.name.as_str().into();
        }
        line
    }

    /// Reads what [`lines`](Self::lines) has written. Lines that say something unknown are passed over.
    ///
    /// # Errors
    /// What is wrong with the first line that is not as written.
    pub fn read(text: &str) -> Result<Self, LinesError> {
        let mut reader: Option<Self> = None;
        for (index, line) in text.lines().enumerate() {
            let wrong = |reason: String| LinesError {
                line: index + 1,
                reason,
            };
            let value: Value =
                serde_json::from_str(line).map_err(|error| wrong(format!("{error}")))?;
            match &mut reader {
                None => reader = Some(read_head(&value).map_err(wrong)?),
                Some(reader) => reader.add(&value).ok_or_else(|| {
                    let what = value["what"].as_str().unwrap_or_default();
                    wrong(format!("`{what}` is not whole"))
                })?,
            }
        }
        let mut recording = reader.ok_or_else(|| LinesError {
            line: 1,
            reason: "it is empty".to_owned(),
        })?;
        // Others may have sorted the lines, or put files together.
        recording.facts.sort_by_key(|noted| noted.fact.at_ns);
        recording.lives.retain(|_, life| !life.terms.is_empty());
        Ok(recording)
    }

    /// `None` if the line lacks something.
    fn add(&mut self, line: &Value) -> Option<()> {
        let at_ns = || line["at_ns"].as_u64();
        match line["what"].as_str()? {
            "task" => {
                let (id, life) = read_task(line)?;
                let known = self.lives.entry(id).or_insert(Life {
                    terms: Vec::new(),
                    ..life.clone()
                });
                known.terms.extend(life.terms);
            }
            "missed" => self.misses.push(read_miss(line)?),
            "agent-away" => self.own.push(Own::Away {
                since_ns: line["since_ns"].as_u64()?,
                until_ns: at_ns()?,
            }),
            "facts-lost" => self.own.push(Own::Lost {
                at_ns: at_ns()?,
                facts: line["facts"].as_u64()?,
            }),
            what => {
                if let Some(what) = words::read(what, line)? {
                    self.facts.push(read_fact(line, what)?);
                }
            }
        }
        Some(())
    }
}

fn read_fact(line: &Value, what: FactKind) -> Option<Noted> {
    // What is left out is nobody; what is there has to be somebody.
    let cpu = match &line["cpu"] {
        Value::Null => None,
        value => Some(CpuId::new(usize::try_from(value.as_u64()?).ok()?)?),
    };
    let task = match &line["task"] {
        Value::Null => None,
        value => Some(read_number(value)?),
    };
    let life = match &line["life"] {
        Value::Null => None,
        value => Some(u32::try_from(value.as_u64()?).ok()?),
    };
    Some(Noted {
        fact: Fact {
            at_ns: line["at_ns"].as_u64()?,
            task,
            cpu,
            what,
        },
        life,
    })
}

fn read_number(value: &Value) -> Option<TaskId> {
    let number = value.as_u64().filter(|&number| number < TASKS_MAX)?;
    Some(TaskId::from_index(usize::try_from(number).ok()?))
}

fn write_fact(text: &mut String, noted: &Noted, names: &BTreeMap<u32, String>) {
    let Noted { fact, life } = noted;
    let (what, more) = words::of(&fact.what);
    // A string takes any text.
    let _ = write!(text, "{{\"at_ns\":{}", fact.at_ns);
    if let Some(task) = fact.task {
        let _ = write!(text, ",\"task\":{}", task.index());
    }
    if let Some(life) = life {
        let _ = write!(text, ",\"life\":{life}");
        if let Some(name) = names.get(life) {
            let _ = write!(text, ",\"name\":{name}");
        }
    }
    if let Some(cpu) = fact.cpu {
        let _ = write!(text, ",\"cpu\":{}", cpu.index());
    }
    let _ = write!(text, ",\"what\":\"{what}\"");
    if let Some((key, value)) = more {
        let _ = write!(text, ",\"{key}\":{value}");
    }
    text.push_str("}\n");
}

fn task(id: u32, life: &Life, terms: &Terms) -> Value {
    let mut line = json!({
        "what": "task",
        "task": life.task.index(),
        "life": id,
        "name": life.name,
        "since_ns": terms.since_ns,
        "cost_ns": terms.cost.as_ns(),
        "period_ns": terms.period.as_ns(),
        "deadline_ns": terms.deadline.as_ns(),
        "priority": terms.priority.number(),
        "cpus": terms.cpus.to_string(),
    });
    if let Some(gone_ns) = life.gone_ns {
        line["gone_ns"] = gone_ns.into();
    }
    line
}

fn own_line(own: &Own) -> Value {
    match own {
        Own::Away { since_ns, until_ns } => {
            json!({ "at_ns": until_ns, "what": "agent-away", "since_ns": since_ns })
        }
        Own::Lost { at_ns, facts } => {
            json!({ "at_ns": at_ns, "what": "facts-lost", "facts": facts })
        }
    }
}

fn read_head(line: &Value) -> Result<Recording, String> {
    if line["what"] != "record" {
        return Err("it does not begin as a record".to_owned());
    }
    let version = line["schema_version"].as_u64();
    if version != Some(SCHEMA_VERSION) {
        return Err(format!("`schema_version` is not {SCHEMA_VERSION}"));
    }
    let text = |key: &str| {
        let text = line[key].as_str().map(str::to_owned);
        text.ok_or_else(|| format!("`{key}` is no text"))
    };
    let ns = |key: &str| {
        let ns = line[key].as_u64();
        ns.ok_or_else(|| format!("`{key}` is no time in nanoseconds"))
    };
    let cpus = text("cpus")?;
    let cpus = cpus.parse::<CpuSet>();
    let missed = match &line["missed"] {
        Value::Null => None,
        value => Some(read_miss(value).ok_or("`missed` is not whole")?),
    };
    Ok(Recording {
        agent: text("agent")?,
        policy: text("policy")?,
        cpus: cpus.map_err(|error| format!("`cpus`: {error}"))?,
        since_ns: ns("since_ns")?,
        until_ns: ns("until_ns")?,
        unix_ns: ns("unix_ns")?,
        missed,
        lives: BTreeMap::new(),
        facts: Vec::new(),
        misses: Vec::new(),
        own: Vec::new(),
    })
}

fn read_miss(line: &Value) -> Option<Missed> {
    Some(Missed {
        life: u32::try_from(line["life"].as_u64()?).ok()?,
        began_ns: line["began_ns"].as_u64()?,
        due_ns: line["at_ns"].as_u64()?,
    })
}

fn read_task(line: &Value) -> Option<(u32, Life)> {
    let span = |key: &str| line[key].as_u64().map(Span::from_ns);
    let terms = Terms {
        since_ns: line["since_ns"].as_u64()?,
        cost: span("cost_ns")?,
        period: span("period_ns")?,
        deadline: span("deadline_ns")?,
        priority: Priority::new(u32::try_from(line["priority"].as_u64()?).ok()?)?,
        cpus: line["cpus"].as_str()?.parse().ok()?,
    };
    let life = Life {
        task: read_number(&line["task"])?,
        name: line["name"].as_str()?.to_owned(),
        terms: vec![terms],
        gone_ns: line["gone_ns"].as_u64(),
    };
    Some((u32::try_from(line["life"].as_u64()?).ok()?, life))
}
