# SPDX-License-Identifier: Apache-2.0
"""Renders chat templates with Jinja2, as transformers does: its filters, functions and flags.

Reads from stdin a line of JSON with the template, the special tokens and the loss mode, then one line per conversation;
prints one line for each. Exits with 3 if jinja2 is missing.
"""
import contextlib, datetime, io, json, os, resource, signal, sys
try:
    import jinja2
    from jinja2 import ext, nodes, sandbox
except ImportError:
    sys.exit(3)

SAID = ("\ue0f1\ue0f2\ue0f1", "\ue0f3\ue0f2\ue0f3")  # around what a template says that the assistant says

SECONDS, BYTES, LETTERS = 5, 2 << 30, 16 << 20  # what one conversation may take

class Refused(Exception):
    pass

class TooMuch(BaseException):
    pass

@contextlib.contextmanager
def limits():
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    # For code that sees no signal.
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 3 * SECONDS, hard))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    except MemoryError:
        raise TooMuch(f"{BYTES >> 30} GiB of memory")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)

def late(*_):
    raise TooMuch(f"{SECONDS} s of processor time")

class Generation(ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("said"), [], [], body).set_lineno(line)

    def said(self, caller):
        text = caller()
        return SAID[0] + text + SAID[1] if text else text

def refuse(message):
    raise Refused(str(message))

def dump(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

def now(form):
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return (datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc) if epoch else datetime.datetime.now()).strftime(form)

class Renderer:
    def __init__(self, head):
        environment = sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"])
        environment.filters["tojson"] = dump
        environment.globals.update(raise_exception=refuse, strftime_now=now)
        self.usual = self.compiled(environment, head, "template")
        self.tool_use = self.compiled(environment, head, "tool_use") or self.usual
        self.tokens, self.special, self.assistant = head["tokens"], head["special"], head["loss_on"] == "assistant"

    def compiled(self, environment, head, key):
        """A template, and whether it has "generation" blocks; nothing if there is none."""
        if head[key] is None:
            return None
        try:
            return environment.from_string(head[key]), any(token[1:] == ("name", "generation") for token in environment.lex(head[key]))
        except jinja2.TemplateSyntaxError as error:
            error.of = key
            raise

    def chosen(self, asked):
        return self.tool_use if "tools" in asked else self.usual

    def raw(self, asked, messages, prompt=False):
        parts, letters = [], 0
        for part in self.chosen(asked)[0].generate(messages=messages, tools=asked.get("tools"), documents=None, add_generation_prompt=prompt, **self.tokens):
            parts.append(part)
            letters += len(part)
            if letters > LETTERS:
                raise TooMuch(f"{LETTERS} letters of text")
        return "".join(parts)

    def text(self, asked, messages, prompt=False):
        return self.raw(asked, messages, prompt).replace(SAID[0], "").replace(SAID[1], "")

    def rendered(self, asked):
        messages = asked["messages"]
        raw = self.raw(asked, messages)
        raw.encode()  # of half a character there are no bytes
        if not self.assistant:
            return {"text": raw.replace(SAID[0], "").replace(SAID[1], ""), "spans": []}
        if self.chosen(asked)[1]:
            return by_blocks(raw)
        spans = [self.turn(asked, raw, i) for i, message in enumerate(messages) if message["role"] == "assistant"]
        return {"text": raw, "spans": spans}

    def turn(self, asked, full, i):
        """Where the assistant's message number i stands: what the same template makes of shorter conversations begins the text."""
        messages = asked["messages"]
        begin = end = None
        with contextlib.suppress(Refused, jinja2.TemplateError, TypeError, KeyError, AttributeError):
            before = self.text(asked, messages[:i], prompt=True)
            if i > 0 and full.startswith(before) and before != self.text(asked, messages[:i]):
                begin = len(before)
        with contextlib.suppress(Refused, jinja2.TemplateError, TypeError, KeyError, AttributeError):
            after = self.text(asked, messages[:i + 1])
            if full.startswith(after):
                end = len(after)
        said, place = messages[i].get("content"), None
        if isinstance(said, str) and said.strip():
            place = self.marked(asked, full, i, said)
        if begin is None and place:
            begin = place[0]
        if place and not messages[i].get("tool_calls"):
            end = self.ended(full, place[1], end)
        elif end is not None:
            end = self.without_blanks(full, end)
        if begin is None or end is None or begin > end:
            raise Refused(None, i + 1)
        return [begin, end]

    def marked(self, asked, full, i, said):
        """The place of a message's content, by one that has marks around it."""
        messages = list(asked["messages"])
        for form in (said, said.strip(), said.lstrip(), said.rstrip()):  # some templates strip it
            messages[i] = {**messages[i], "content": SAID[0] + form + SAID[1]}
            with contextlib.suppress(Refused, jinja2.TemplateError):
                text = self.raw(asked, messages)
                if text.count(SAID[0]) == text.count(SAID[1]) == 1 and text.replace(SAID[0], "").replace(SAID[1], "") == full:
                    return text.index(SAID[0]), text.index(SAID[1]) - len(SAID[0])
        return None

    def without_blanks(self, full, end):
        """Blanks behind the special token that ends a turn are the template's."""
        bare = full[:end].rstrip()
        return len(bare) if any(bare.endswith(token) for token in self.special) else end

    def ended(self, full, end, limit):
        """With the special tokens that follow up to the turn's limit; where that is not known, with the first."""
        while True:
            rest = full[end:limit].lstrip()
            token = next((token for token in self.special if rest.startswith(token)), None)
            if token is None:
                return end
            end = len(full[:limit]) - len(rest) + len(token)
            if limit is None:
                return end

def by_blocks(raw):
    text, spans, begin = "", [], None
    while raw:
        places = [(raw.find(mark), mark) for mark in SAID if mark in raw]
        if not places:
            text += raw
            break
        at, mark = min(places)
        text += raw[:at]
        raw = raw[at + len(mark):]
        if mark == SAID[0]:
            begin = len(text)
        else:
            spans.append([begin, len(text)])
    return {"text": text, "spans": spans}

def answer(given):
    if "spans" in given:  # of bytes
        given["spans"] = [[len(given["text"][:place].encode()) for place in span] for span in given["spans"]]
    sys.stdout.buffer.write(json.dumps(given, ensure_ascii=False).encode("utf-8", "replace") + b"\n")

def main():
    sys.stdin = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8")
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    signal.signal(signal.SIGPROF, late)
    try:
        with limits():
            renderer = Renderer(json.loads(sys.stdin.readline()))
    except jinja2.TemplateSyntaxError as error:
        return answer({"syntax": error.message, "line": error.lineno, "of": error.of})
    except TooMuch as error:
        return answer({"limit": str(error)})
    answer({"jinja": jinja2.__version__})
    for line in sys.stdin:
        try:
            if any(mark in line for mark in SAID):
                raise ValueError("the conversation has the characters that zs uses as marks around the assistant's messages")
            with limits():
                made = renderer.rendered(json.loads(line))
            answer(made)
        except TooMuch as error:
            answer({"limit": str(error)})
        except Refused as error:
            answer({"refused": error.args[0], "turn": error.args[1] if len(error.args) > 1 else 0})
        except Exception as error:
            answer({"failed": f"{type(error).__name__}: {error}"})

main()
