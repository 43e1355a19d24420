"""Queries as people type them, in many scripts: which of a few texts they find, in which order, with which notes.

A row is a query, the texts of a store (called a, b, c, … in their order) and what is found: `b > a` is b before a
with a better score, `a c` is both in any order, and an empty text is nothing. A row names every note it causes.
Each is asked of the SQLite store and of the plain reference store, which have to agree on all they say.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice, pairwise
from typing import NamedTuple

import pytest

from nacre.engine.engine import Nacre
from nacre.interfaces import Store
from nacre.query import lexer
from nacre.query.filters import KEYS
from nacre.storage.reference import MemoryStore
from nacre.types.memory import DEFAULT_SPACE, NewMemory
from nacre.types.search import Hit, SearchResult
from postgres_server import needs_postgres
from stores import Stores

NOW = datetime(2026, 3, 11, 15, 30, tzinfo=UTC)  # a Wednesday


class Row(NamedTuple):
    query: str
    texts: Sequence[str | NewMemory]
    found: str
    notes: tuple[str, ...] = ()  # of each the beginning


UNBALANCED = 'an unbalanced " was ignored'
PARENTHESES = "unbalanced or too deeply nested parentheses were ignored"
ONE_BY_ONE = "no memory has the quoted words side by side; they were searched one by one"
NOTHING_ASKED = "the query asks for nothing: give some words"
NO_WORDS = "the query has no words to search for; emoji and symbols are found by meaning only"
FAR = "the NEAR distance was reduced to 1,000 words"


def as_word(operator: str) -> str:
    return f"{operator} has nothing to join and was read as a word"


def no_filter(key: str) -> str:
    return f"{key}: is not a filter and was read as a word"


def lone(symbol: str) -> str:
    return f"{symbol} has nothing to act on and was read as a word"


def star(word: str) -> str:
    return f"* finds word beginnings only at the end of a single word; {word} was read as words"


def many(values: int) -> str:
    return ",".join(["db", *map(str, range(1, values))])


def instead(query: str) -> str:
    return f"nothing was found as typed; these are the results for: {query}"


# ---------------------------------------------------------------- words in the Latin script

ENGLISH = [
    Row("deploy", ["We deploy on Friday", "Lunch is at noon"], "a"),
    Row("DEPLOY", ["We deploy on Friday", "Lunch is at noon"], "a"),
    Row("deploy friday", ["deploy daily", "We deploy on Friday", "Lunch is at noon"], "b > a"),
    Row("rollback", ["deploy", "release"], ""),
    # stems, both ways
    Row("deployments", ["deploying it", "it was deployed", "a deployment", "a depot"], "a b c"),
    Row("run", ["they were running", "she runs", "a ruin"], "a b"),
    Row("running", ["run it again", "a ruin"], "a"),
    Row("databases", ["the database", "a data basis"], "a"),
    Row("query", ["all queries are logged", "a quarry"], "a"),
    Row("car", ["a cart", "a scar"], ""),
    # apostrophes
    Row("dont", ["don't do it", "a donkey"], "a"),
    Row("don’t panic", ["DON'T PANIC", "do nothing"], "a"),
    Row("user", ["the user's name", "a used car"], "a"),
    Row("users'", ["the user", "a used car"], "a"),
    Row("o'clock", ["at nine o’clock", "a clock"], "a"),
    # punctuation around words
    Row("hello, world!", ["(hello) «world»", "help"], "a"),
    Row("e.g. this: “quoted”", ["quoted", "quote it", "e.g. nothing"], "a"),
    Row("one—two", ["one two", "three"], "a"),
    # a question matches by what it is about, unless it is about nothing
    Row("what is the plan for it", ["it is what it is", "the plan"], "b"),
    Row("where did we put the keys?", ["where did we go", "keys are in the drawer"], "b"),
    Row("who are you", ["you are who you are", "lunch at noon"], "a"),
    Row("to be or not to be", ["To be, or not to be", "tomatoes"], "a"),
    Row("The The", ["The The is a band", "a band"], "a"),
    # misspelled
    Row("databse", ["the database", "a table"], "a", (instead("database"),)),
    Row("postgers cluster", ["a postgres node", "one cluster"], "b"),
]

GERMAN = [
    Row("straße", ["STRASSE", "Strand"], "a"),
    Row("STRASSE", ["die Straße", "der Strand"], "a"),
    Row("strasse", ["GROẞE STRAẞE", "der Strand"], "a"),
    Row("größe", ["die grosse", "die Größe"], "b > a"),
    Row("grosse", ["die Größe", "die grosse"], "b > a"),
    Row("Übung", ["ubung ohne Punkte", "Übung macht den Meister"], "b > a"),
    Row("ubung", ["Übung macht den Meister", "Lesung"], "a"),
    Row("u\u0308bung", ["Übung", "Lesung"], "a"),
]

FRENCH = [
    Row("été", ["ete", "l'été dernier", "hiver"], "b > a"),
    Row("l'été", ["un été chaud", "hiver"], "a"),
    Row("l’été", ["l'été dernier", "hiver"], "a"),
    Row("ete", ["l'été dernier", "hiver"], "a"),
    Row("elle", ["qu'elle vienne", "lui"], "a"),
    Row("accord", ["d'accord", "un cor"], "a"),
    Row("aujourd'hui", ["Aujourd’hui il pleut", "hui"], "a"),
    Row("naïve", ["a naive plan", "a naïve plan"], "b > a"),
    Row("naive", ["a naïve plan", "a naive plan"], "b > a"),
    Row("nai\u0308ve", ["a naive plan", "a naïve plan"], "b > a"),
    Row("NAÏVE", ["a naive plan", "a naïve plan"], "b > a"),
    Row("façade", ["la facade", "la façade", "la face"], "b > a"),
    Row("coeur", ["le cœur", "le corps"], "a"),
    Row("cœur", ["le coeur", "le cœur", "le corps"], "b > a"),
    Row("coeur", ["le cœur", "le coeur", "le corps"], "b > a"),
    Row("ŒUVRES", ["une oeuvre", "un livre"], "a"),
    Row('"coeur de ville"', ["Cœur de ville", "ville de cœur"], "a"),
]

SPANISH = [
    Row("mañana", ["manana", "hasta mañana", "hoy"], "b > a"),
    Row("manana", ["hasta mañana", "hoy"], "a"),
    Row("año", ["ano", "el año"], "b > a"),
    Row("¿qué pasó?", ["que paso", "nada"], "a"),
    Row("¡acción!", ["la ACCIÓN", "la razón"], "a"),
]

NORDIC = [
    Row("smorrebrod", ["Smørrebrød til frokost", "brød"], "a"),
    Row("smørrebrød", ["smorrebrod", "SMØRREBRØD", "brod"], "b > a"),
    Row("aero", ["Ærø er en ø", "Fyn er en ø"], "a"),
    Row("Þór", ["Thor", "Óðinn"], "a"),
    Row("odinn", ["Óðinn", "Þór"], "a"),
    Row("fadir", ["faðir minn", "móðir"], "a"),
]

STROKES = [
    Row("hamrun", ["Il-Ħamrun", "Malta"], "a"),
    Row("Ħamrun", ["Hamrun", "Ħamrun", "Malta"], "b > a"),
    Row("ruotta", ["ruoŧŧa", "suomi"], "a"),
]

POLISH = [
    Row("lodz", ["Łódź jest duża", "Łęczyca"], "a"),
    Row("Łódź", ["Łodz", "Lublin"], "a"),
    Row("Łodz", ["Łódź", "Lublin"], "a"),
    Row("Łódź", ["Lodz", "Łódź", "Lublin"], "b > a"),
    Row("lo*", ["Łódź", "Lublin"], "a"),
    Row("entity:Lodz", ["Łódź", "Lublin"], "a"),
]

TURKISH = [
    Row("istanbul", ["İstanbul güzel", "Ankara"], "a"),
    Row("İSTANBUL", ["istanbul'da", "İstanbul", "Ankara"], "b"),
    Row("i\u0307stanbul", ["İstanbul", "Ankara"], "a"),
    Row("güzel", ["guzel bir gün", "güzel bir gün", "gizli"], "b > a"),
    Row("gunesli", ["güneşli", "gün"], "a"),
    Row("ışık", ["ışık açık", "şık"], "a"),
    Row("IŞIK", ["ışık açık", "şık"], "a"),
    Row("ışık", ["IŞIK AÇIK", "şık"], "a"),
    Row("isik", ["ışık açık", "şık"], "a"),
]

VIETNAMESE = [
    Row("Hà Nội", ["ha noi", "Hà Nội", "Huế"], "b > a"),
    Row("ha noi", ["Thủ đô Hà Nội", "Huế"], "a"),
    Row('"tiếng việt"', ["học tiếng Việt", "Việt tiếng", "tieng Viet"], "a c"),
    Row("đường", ["duong pho", "đường phố", "dong"], "b > a"),
    Row("duong", ["đường phố", "duong pho", "dong"], "b > a"),
    Row("ĐƯỜNG", ["đường phố", "dong"], "a"),
]

# ---------------------------------------------------------------- other scripts with spaces

CYRILLIC = [
    Row("привет", ["Привет, мир", "мир"], "a"),
    Row("книги", ["новая книга", "моя книжка"], "a"),
    Row("ёлка", ["елка", "ёлка", "палка"], "b > a"),
    Row("елка", ["ёлка", "палка"], "a"),
    Row("МОСКВА", ["в Москве", "в Минске"], "a"),
    Row('"добрый день"', ["Добрый день!", "день добрый"], "a"),
    Row("прив*", ["привет", "привычка", "ответ"], "a b"),
    Row("кот AND пёс", ["кот и пёс", "только кот"], "a"),
    Row("дім", ["цей дім", "дим"], "a"),
]

GREEK = [
    Row("ελλαδα", ["Ελλάδα", "Ιταλία"], "a"),
    Row("Ελλάδα", ["ελλαδα", "Ελλάδα", "Ιταλία"], "b > a"),
    Row("ΟΔΟΣ", ["η οδός", "το σπίτι"], "a"),
    Row("οδός", ["ΟΔΟΣ", "το σπίτι"], "a"),
]

ARABIC = [
    Row("محمد", ["قال مُحَمَّد", "أحمد"], "a"),
    Row("مُحَمَّد", ["محمد", "مُحَمَّد", "سعيد"], "b > a"),
    Row("كتاب", ["الكتاب الجديد", "بيت"], "a"),
    Row("احمد", ["أحمد هنا", "سعيد هنا"], "a"),
    Row("مـــرحبا", ["مرحبا", "وداعا"], "a"),
    Row("كتاب NOT بيت", ["كتاب في بيت", "كتاب"], "b"),
    Row("أين الكتاب؟", ["كتاب على الطاولة", "بيت كبير"], "a"),
    Row("\u200fمرحبا\u200f", ["مرحبا", "وداعا"], "a"),
]

HEBREW = [
    Row("שלום", ["שָׁלוֹם", "לילה"], "a"),
    Row("ספר", ["בית־ספר", "בית"], "a"),
    Row('"בית ספר"', ["בית־ספר חדש", "ספר בית"], "a"),
    Row("\u202bשלום\u202c", ["שלום", "לילה"], "a"),
    Row("שָׁלוֹם", ["שלום", "לילה"], "a"),
    Row("שָׁלוֹם", ["שלום", "שָׁלוֹם", "לילה"], "b > a"),
    # a quote between letters is part of an abbreviation, not a quotation mark
    Row('צה"ל', ['צה"ל הודיע', "הודיע"], "a"),
    Row('צה"ל', ["צה״ל הודיע", "הודיע"], "a"),
    Row('"צה"ל הודיע"', ['צה"ל הודיע', 'הודיע צה"ל'], "a"),
    Row('הודיע -צה"ל', ['צה"ל הודיע', "הודיע"], "b"),
    Row('הוא אמר "שלום"', ["שלום", "הוא אמר"], "a"),
    Row("ספר NOT בית", ["בית־ספר", "ספר"], "b"),
]

INDIC = [
    # Devanagari: vowel signs belong to their word
    Row("हिन्दी", ["मुझे हिन्दी पसंद है", "हिरन"], "a"),
    Row("की", ["राम की गाय", "राम का घर"], "a"),
    Row("हि", ["हिन्दी"], ""),
    Row("नमस्ते", ["नमस्ते दुनिया", "नमक"], "a"),
    Row("किताब", ["किताबें पढ़ो", "काम करो"], "a"),
    Row('"हिन्दी भाषा"', ["हिन्दी भाषा", "भाषा हिन्दी"], "a"),
    Row("नम*", ["नमस्ते", "नमक", "मन"], "a b"),
    # Bengali
    Row("বাংলা", ["আমি বাংলা বলি", "আমি গান গাই"], "a"),
    Row("বাংলা*", ["বাংলাদেশ", "ভারত"], "a"),
    # Tamil
    Row("தமிழ்", ["எனக்கு தமிழ் தெரியும்", "எனக்கு தெரியும்"], "a"),
    Row("தமிழ் -மொழி", ["தமிழ் மொழி", "தமிழ் நாடு"], "b"),
    Row("தமிழ் NOT மொழி", ["தமிழ் மொழி", "தமிழ் நாடு"], "b"),
]

# ---------------------------------------------------------------- scripts without spaces

CHINESE = [
    Row("数据库", ["我们今天讨论数据库", "我们今天吃面条"], "a"),
    Row("数据", ["我们今天讨论数据库", "面条"], "a"),
    Row("库", ["我们今天讨论数据库", "面条"], "a"),
    Row("据数", ["数据库"], ""),
    Row("数据库", ["数据很多", "数据库很大"], "b > a"),
    Row("面", ["面", "面条", "米饭"], "a b"),
    Row('"今天讨论"', ["我们今天讨论数据库", "讨论今天的事"], "a"),
    Row('"库"', ["数据库很大", "面条"], "a"),
    Row("数*", ["数据库", "面条"], "a"),
    Row("今天 -讨论", ["今天讨论", "今天吃饭"], "b"),
    Row("你好，世界！", ["你好世界", "再见"], "a"),
    Row("，。！", ["你好，世界！"], "", (NO_WORDS,)),
    Row("数据 AND 面条", ["数据和面条", "数据", "面条"], "a"),
    Row("数据 OR 面条", ["数据", "面条", "米饭"], "a b"),
    Row("数据 NOT 面条 米饭", ["数据和面条", "数据", "米饭"], "b c"),
    Row("（数据 OR 面条） NOT 库", ["数据", "面条", "数据库"], "a b"),
    Row("数据 -（面条）", ["数据和面条", "数据"], "b"),
    Row("数据 and 面条", ["数据和面条", "数据", "面条"], "a > b c"),
]

JAPANESE = [
    Row("日本語", ["日本語を書く", "英語を書く"], "a"),
    Row("語", ["日本語を書く", "猫"], "a"),
    Row("猫", ["黒い猫が好き", "黒い犬が好き"], "a"),
    Row("カメラ", ["新しいｶﾒﾗ", "かめら"], "a"),
    Row("ｶﾞｲﾄﾞ", ["旅行ガイド", "旅行カイト"], "a"),
    Row("データベース", ["データベースを作る", "ベッドで寝る"], "a"),
    Row("東京　大阪", ["東京の駅", "大阪の駅", "京都の寺"], "a b"),
    Row("人々", ["人々が集まる", "犬が集まる"], "a"),
    Row("「猫」とは", ["猫とは何か", "鳥"], "a"),
]

KOREAN = [
    Row("안녕하세요", ["안녕하세요 여러분", "감사합니다"], "a"),
    Row("학교", ["학교에서 만나요", "집에서 만나요"], "a"),
    Row("한국 -음식", ["한국 음식", "한국 여행"], "b"),
    Row("한국 NOT 음식", ["한국 음식", "한국 여행"], "b"),
    Row("한국 AND 음식", ["한국 음식", "한국 여행"], "a"),
    Row(unicodedata.normalize("NFD", "학교"), ["학교에서 만나요", "집에서 만나요"], "a"),
    Row("집", ["우리집", "학교"], "a"),
]

SOUTH_EAST_ASIAN = [
    # Thai
    Row("ไทย", ["ฉันพูดภาษาไทย", "ฉันกินข้าว"], "a"),
    Row("ภาษา", ["ฉันพูดภาษาไทย", "ฉันกินข้าว"], "a"),
    Row("น้ำ", ["ดื่มน้ำ", "กินข้าว"], "a"),
    Row('"ภาษาไทย"', ["ฉันพูดภาษาไทย", "ไทยภาษา"], "a"),
    # Lao
    Row("ລາວ", ["ພາສາລາວ", "ເຂົ້າ"], "a"),
    Row('"ພາສາລາວ"', ["ຂ້ອຍເວົ້າພາສາລາວ", "ລາວພາສາ"], "a"),
    # Khmer
    Row("ខ្មែរ", ["ភាសាខ្មែរ", "បាយ"], "a"),
    Row("ភាសា -បាយ", ["ភាសាខ្មែរ", "ភាសា បាយ"], "a"),
    # Burmese
    Row("မြန်မာ", ["မြန်မာစာ", "ထမင်း"], "a"),
]

MIXED = [
    Row("GPT4", ["用GPT4写", "用笔写"], "a"),
    Row("gpt4", ["用GPT4写", "用笔写"], "a"),
    Row("gpt", ["用GPT4写", "用笔写"], "a"),
    Row("写", ["用GPT4写", "用GPT4"], "a"),
    Row("用", ["用GPT4写", "GPT4写"], "a"),
    Row("用GPT4写", ["GPT4", "用GPT4写"], "b > a"),
    Row('"用GPT4写"', ["我用GPT4写信", "用GPT4"], "a"),
    Row("iphone 手机", ["iPhone手机", "安卓"], "a"),
    Row("Python入門", ["Python入門書", "Python book", "入門書", "料理"], "a > b c"),
    Row("μs", ["a 5 μs pause", "a pause of 5 ms"], "a"),
    Row("API ключ", ["новый ключ для API", "ключ от дома", "дом"], "a > b"),
    Row("日本 Tokyo", ["日本", "Tokyo", "Paris"], "a b"),
]

# ---------------------------------------------------------------- symbols, and characters nobody sees

SYMBOLS = [
    Row("🎉", ["party 🎉", "work"], "", (NO_WORDS,)),
    Row('"🎉"', ["party 🎉", "work"], "", (NO_WORDS,)),
    Row("🎉 AND 🎊", ["party 🎉 🎊", "work"], "", (NO_WORDS,)),
    Row("-🎉", ["party 🎉", "work"], "", (NOTHING_ASKED,)),
    Row("tag:db 🎉", [NewMemory(text="x", tags=("db",)), "y 🎉"], "a"),
    Row("party 🎉", ["a party", "🎉 work"], "a"),
    Row("👩‍👩‍👧 family", ["family", "friends"], "a"),
    Row("🇩🇪 germany", ["Germany 🇩🇪", "France 🇫🇷"], "a"),
    Row("party AND 🎉", ["a party", "work"], "a"),
    Row("party -🎉", ["party 🎉", "work"], "a"),
    Row('"big party"', ["a big 🎉 party", "party big"], "a"),
    Row("→ ★ ∞ §", ["arrow → star ★"], "", (NO_WORDS,)),
    Row("50%", ["50 percent", "a half"], "a"),
    Row("1,000", ["1,000 rows", "1000 rows"], "a"),
    Row("①", ["step 1", "step 2"], "a"),
    Row("x²", ["x2", "y2"], "a"),
    Row("ｆｕｌｌ　ｗｉｄｔｈ", ["full width", "half"], "a"),
    Row("width", ["ｆｕｌｌ　ｗｉｄｔｈ", "half"], "a"),
    Row("file", ["the ﬁle", "the pile"], "a"),
    Row("ﬁle", ["the file", "the pile"], "a"),
    Row("soft\u00adhyphen", ["softhyphen", "soft"], "a"),
    Row("softhyphen", ["soft\u00adhyphen", "soft"], "a"),
    Row("zero\u200bwidth", ["zerowidth", "width"], "a"),
    Row("zerowidth", ["zero\u200b\u2060width", "width"], "a"),
    Row("\ufeffstart", ["a start", "an end"], "a"),
    Row("\ufeff-start", ["a start", "an end"], "b"),
    Row("\u200f-start\u200f", ["a start", "an end"], "b"),
    Row("-\u200estart", ["a start", "an end"], "b"),
    Row("\u2066start\u2069 \u202aAND\u202c now", ["a start now", "a start"], "a"),
    Row('\u202e"\u200eone two\u200f"\u202c', ["one two", "two one"], "a"),
    Row("st\u200eart", ["a start", "an end"], "a"),
    Row("\u200estart\u200f", ["a start", "an end"], "a"),
    Row("start", ["\u202dstart\u202c now", "an end"], "a"),
    Row("one\u00a0two", ["one", "two", "three"], "a b"),
    Row("a\x00lpha", ["lpha", "beta"], "a"),
]

# ---------------------------------------------------------------- identifiers

IDENTIFIERS = [
    # the whole before its parts
    Row("getUserName", ["get the name of a user", "call getUserName()", "set it"], "b > a"),
    Row("snake_case_name", ["a name in snake case", "let snake_case_name = 1", "x"], "b > a"),
    Row("kebab-case", ["a kebab in a case", "use kebab-case", "x"], "b > a"),
    Row("src/app/main.py:42", ["main app in src", "see src/app/main.py:42", "x"], "b > a"),
    Row("v1.2.3", ["steps 2 3", "since v1.2.3", "x"], "b > a"),
    Row("C++", ["written in C", "written in C++", "Go"], "b > a"),
    Row("C#", ["in C", "in C#", "Go"], "b > a"),
    Row("#1234", ["1234 bottles", "fixed in #1234", "99 bottles"], "b > a"),
    Row("user@example.com", ["an example for the user", "mail user@example.com", "x"], "b > a"),
    Row("E0502", ["error E0502 again", "error E0503 again"], "a"),
    Row(".NET", ["a net", "uses .NET", "x"], "b > a"),
    # by parts
    Row("name", ["call getUserName()", "x"], "a"),
    Row("user name", ["call getUserName()", "x"], "a"),
    Row('"user name"', ["call getUserName()", "name of the user"], "a"),
    Row("getusername", ["call getUserName()", "x"], "a"),
    Row("HTTPServer", ["http server", "x"], "a"),
    Row("case", ["let snake_case_name = 1", "use kebab-case", "x"], "a b"),
    Row("main.py", ["see src/app/main.py:42", "main road"], "a > b"),
    Row("app", ["see src/app/main.py:42", "apple"], "a"),
    Row("42", ["see src/app/main.py:42", "43"], "a"),
    Row("C", ["written in C++", "Go"], "a"),
    Row("1234", ["fixed in #1234", "fixed in #1235"], "a"),
    Row("example.com", ["mail user@example.com", "x"], "a"),
    Row("0502", ["error E0502", "x"], "a"),
    Row("python", ["python3 is there", "x"], "a"),
    Row("snake-case-name", ["let snake_case_name = 1", "x"], "a"),
    # as conditions
    Row("C++ AND fast", ["C++ is fast", "C is fast"], "a"),
    Row("fast -C++", ["C++ is fast", "C is fast"], "b"),
    Row("getUserName AND x", ["x get_user_name", "x name of the user"], "a"),
    Row("-kebab-case name", ["kebab-case name", "kebab name"], "b"),
    Row("#12 NOT #13", ["#12 and #13", "#12 alone"], "b"),
    Row("#12 AND #13", ["#12 and #13", "#12 alone"], "a"),
    # neither filters nor operators
    Row("https://example.com/a?b=1", ["see https://example.com/a?b=1", "x"], "a"),
    Row("std::vector", ["a std::vector", "a std::map", "x"], "a > b"),
    Row("localhost:8080", ["on localhost:8080", "on localhost:9090"], "a > b"),
    Row("10:30", ["at 10:30", "at 10:45"], "a > b"),
    Row(r"C:\temp\x", [r"in C:\temp\x", "in /tmp"], "a"),
    Row("--verbose", ["use --verbose", "quiet"], "a"),
    Row("foo-bar", ["foo", "bar", "baz"], "a b"),
    Row("__init__", ["def __init__(self)", "x"], "a"),
    Row("R&D", ["the R&D team", "x"], "a"),
    Row("~/.config", ["in ~/.config", "config", "x"], "a b"),
]

# ---------------------------------------------------------------- operators

FRUIT = ["apple pear", "apple plum", "pear plum", "cherry"]
JOINED = [
    Row("apple AND pear", FRUIT, "a"),
    Row("apple OR cherry", FRUIT, "a b d"),
    Row("apple NOT pear", FRUIT, "b"),
    Row("apple AND NOT pear", FRUIT, "b"),
    Row("apple -pear", FRUIT, "b"),
    Row("NOT apple", FRUIT, "c d"),
    Row("-apple", FRUIT, "c d"),
    Row("-apple -cherry", FRUIT, "c"),
    Row("NOT apple NOT cherry", FRUIT, "c"),
    Row("apple NOT NOT pear", FRUIT, "b"),
    Row("apple AND NOT NOT pear", FRUIT, "b"),
    Row("NOT NOT apple", FRUIT, "c d"),
    Row("apple AND apple", FRUIT, "a b"),
    Row("apple AND NOT apple", FRUIT, ""),
    # AND and NOT bind tighter than OR
    Row("cherry OR apple AND plum", FRUIT, "b d"),
    Row("apple AND plum OR cherry", FRUIT, "b d"),
    Row("(cherry OR apple) AND plum", FRUIT, "b"),
    Row("apple OR pear NOT plum", FRUIT, "a b"),
    Row("(apple OR pear) NOT plum", FRUIT, "a"),
    # words side by side are one operand
    Row("apple cherry AND pear", FRUIT, "a"),
    Row("pear AND apple cherry", FRUIT, "a"),
    # NOT takes the next operand only
    Row("plum NOT apple pear", FRUIT, "c"),
    Row("plum AND NOT apple pear", FRUIT, "c"),
    Row("apple NOT pear cherry", FRUIT, "d > b"),
    Row("NOT pear apple cherry", FRUIT, "d > b"),
    Row('apple NOT "pear" cherry', FRUIT, "d > b"),
    Row("apple NOT pea* cherry", FRUIT, "d > b"),
    Row("apple NOT (pear) cherry", FRUIT, "d > b"),
    Row("apple NOT NEAR(apple pear) cherry", FRUIT, "d > b"),
    Row("apple NOT pear NOT plum cherry", FRUIT, "d"),
    Row("apple NOT pear AND plum", FRUIT, "b"),
    Row("apple AND NOT pear AND plum", FRUIT, "b"),
    Row("apple NOT pear OR cherry", FRUIT, "d > b"),
    Row("apple AND plum NOT pear", FRUIT, "b"),
    Row("(apple NOT pear) OR cherry", FRUIT, "d > b"),
    # and so does a dash, before a group even where there is no other operator
    Row("-(apple OR cherry) plum", FRUIT, "c"),
    Row("-(apple) plum", FRUIT, "c"),
    Row("plum -(apple)", FRUIT, "c"),
    Row("plum -(apple) cherry", FRUIT, "d > c"),
    Row("-(apple)", FRUIT, "c d"),
    Row("-(apple pear)", FRUIT, "d"),
    Row("-(apple AND pear)", FRUIT, "b c d"),
    Row("-(-apple)", FRUIT, "a b"),
    Row("apple (pear OR cherry)", FRUIT, "a c d"),
    Row("plum -(apple OR cherry)", FRUIT, "c"),
    Row("plum NOT (apple OR cherry)", FRUIT, "c"),
    Row("apple OR NOT plum", FRUIT, "a b > d"),
    Row("((((apple)))) AND (pear)", FRUIT, "a"),
    # in small letters they are words, and so they are in a text all in capitals
    Row("apple and pear", FRUIT, "a > b c"),
    Row("apple not pear", FRUIT, "a > b c"),
    Row("APPLE AND PEAR", FRUIT, "a > b c"),
    Row("APPLE NOT PEAR", FRUIT, "a > b c"),
    Row("#12 APPLE NOT PEAR", FRUIT, "a > b c"),
    Row("ЯБЛОКО NOT ГРУША", ["яблоко и груша", "яблоко"], "a > b"),
    # dashes that exclude nothing
    Row("apple - pear", FRUIT, "a > b c"),
    Row("apple -- pear", FRUIT, "a > b c"),
    Row("apple-pear", FRUIT, "a > b c"),
]

ODD = [
    Row("apple AND", FRUIT, "a b", (as_word("AND"),)),
    Row("AND apple", FRUIT, "a b", (as_word("AND"),)),
    Row("apple OR", FRUIT, "a b", (as_word("OR"),)),
    Row("OR apple", FRUIT, "a b", (as_word("OR"),)),
    Row("apple NOT", FRUIT, "a b", (as_word("NOT"),)),
    Row("apple NOT NOT", FRUIT, "a b", (as_word("NOT"),)),
    Row("apple NOT pear AND", FRUIT, "b", (as_word("AND"),)),
    Row("apple AND pear OR", FRUIT, "a", (as_word("OR"),)),
    Row("apple AND (pear OR)", FRUIT, "a", (as_word("OR"),)),
    Row("apple NOT (pear AND)", FRUIT, "b", (as_word("AND"),)),
    Row('"apple pear" AND', FRUIT, "a", (as_word("AND"),)),
    Row('NOT "apple pear" plum NOT', FRUIT, "b c", (as_word("NOT"),)),
    Row("NEAR(apple pear) OR", FRUIT, "a", (as_word("OR"),)),
    Row("apple AND AND pear", FRUIT, "a", (as_word("AND"),)),
    Row("apple OR OR cherry", FRUIT, "a b d", (as_word("OR"),)),
    Row("apple AND OR pear", FRUIT, "a > b c", (as_word("AND"),)),
    Row("(apple AND pear", FRUIT, "a", (PARENTHESES,)),
    Row("apple AND pear)", FRUIT, "a", (PARENTHESES,)),
    Row(")apple AND pear(", FRUIT, "a", (PARENTHESES,)),
    Row("apple AND ()", FRUIT, "a b"),
    Row("apple, AND pear", FRUIT, "a"),
    Row("AND, apple", FRUIT, "a b"),
    Row("apple\tAND\u00a0pear", FRUIT, "a"),
    Row("Apple And Pear", FRUIT, "a > b c"),
    Row("APPLE AND pear", FRUIT, "a"),
    Row("apple ＡＮＤ pear", FRUIT, "a > b c"),
    Row("apple AND -pear", FRUIT, "b"),
    Row("-pear AND apple", FRUIT, "b"),
    Row("apple NOT -pear", FRUIT, "b"),
    Row("(apple) pear", FRUIT, "a > b c"),
    Row("apple) (cherry", FRUIT, "a b d"),
    Row('"apple pear', FRUIT, "a > b c", (UNBALANCED,)),
    Row('apple "', FRUIT, "a b", (UNBALANCED,)),
    Row('"apple pear" "cherry', FRUIT, "a", (UNBALANCED,)),
    Row('""', FRUIT, "", (NOTHING_ASKED,)),
    Row('apple ""', FRUIT, "a b"),
    Row('apple"pear"', FRUIT, "a c"),
    Row('plum -"', FRUIT, "b c", (UNBALANCED,)),
    Row("*", FRUIT, "", (lone("*"), NO_WORDS)),
    Row("apple *", FRUIT, "a b", (lone("*"),)),
    Row("^", FRUIT, "", (lone("^"), NO_WORDS)),
    Row("^apple", FRUIT, "a b"),
    Row(":", FRUIT, "", (lone(":"), NO_WORDS)),
    Row("apple : cherry", FRUIT, "a b d", (lone(":"),)),
    Row("apple:", FRUIT, "a b"),
    Row(":apple", FRUIT, "a b"),
    Row("-", FRUIT, "", (NO_WORDS,)),
    Row("()", FRUIT, "", (NO_WORDS,)),
    Row("-()", FRUIT, "", (NOTHING_ASKED,)),
    Row("apple + pear", FRUIT, "a > b c"),
    Row("+apple +pear", FRUIT, "a > b c"),
    Row("apple & pear | plum", FRUIT, "a b c"),
    Row("'; DROP TABLE memories; --", [*FRUIT, "drop the table"], "e"),
    Row("{apple}: [pear]", FRUIT, "a > b c"),
    Row("", FRUIT, "", (NOTHING_ASKED,)),
    Row(" \t\n", FRUIT, "", (NOTHING_ASKED,)),
]

PHRASES = [
    Row('"apple pear"', ["apple pear", "pear apple", "apple and pear"], "a"),
    Row('"Apple, pear!"', ["apple pear", "pear apple"], "a"),
    Row('"to be or not to be"', ["To be, or not to be?", "not to be or to be", "be"], "a"),
    Row('"the the"', ["The The is a band", "the band"], "a"),
    Row('"running shoes"', ["new running shoes", "run in shoes", "running shoe"], "a"),
    Row('-"apple pear"', ["apple pear", "pear apple"], "b"),
    Row('plum -"apple pear"', ["plum apple pear", "plum pear apple"], "b"),
    Row('"apple pear" OR cherry', ["pear apple", "apple pear", "cherry"], "b c"),
    Row('"apple pear" plum', ["apple pear plum", "apple pear", "plum pear"], "a > b"),
    Row('"apple" "plum"', ["apple plum", "apple", "plum apple"], "a c"),
    Row('"apple AND pear"', ["apple and pear", "apple pear"], "a"),
    Row('"tag:db"', [NewMemory(text="a note", tags=("db",)), "write tag:db for it"], "b"),
    Row('"naive plan"', ["a naïve plan", "a plan"], "a"),
    # quotes of other keyboards
    Row("“apple pear”", ["apple pear", "pear tree"], "a"),
    Row("„apple pear“", ["apple pear", "pear apple"], "a"),
    Row("„apple pear‟", ["apple pear", "pear apple"], "a"),
    Row("＂apple pear＂", ["apple pear", "pear apple"], "a"),
    Row('“apple pear"', ["apple pear", "pear apple"], "a"),
    Row("plum -“apple pear”", ["plum apple pear", "plum pear apple"], "b"),
    Row("“apple pear", ["pear apple", "cherry"], "a", (UNBALANCED,)),
    Row("«apple pear»", ["pear apple", "cherry"], "a"),
    Row("‘apple pear’", ["pear apple", "cherry"], "a"),
    Row("who likes “apple pear”?", ["a pear and an apple", "no fruit"], "a"),
    # where no memory has it, its words are searched
    Row('"apple pear"', ["pear apple", "cherry"], "a", (ONE_BY_ONE,)),
    Row('"apple pear"', ["plum", "cherry"], ""),
    # in a sentence, quotes only quote
    Row('what does the "apple pear" flag mean', ["a pear and an apple", "no fruit"], "a"),
    Row('who likes "apple pear"?', ["a pear and an apple", "no fruit"], "a"),
    Row('likes "apple pear"', ["likes an apple pear", "likes a pear and an apple"], "a"),
]

BEGINNINGS = [
    Row("deploy*", ["deployment", "deployed", "a depot", "redeploy"], "a b"),
    Row("DEPLOY*", ["deployment", "depot"], "a"),
    Row("dep* AND friday", ["depot on friday", "deploy", "friday"], "a"),
    Row("friday -dep*", ["depot on friday", "a friday"], "b"),
    Row("naï*", ["naïve", "nail", "night"], "a b"),
    Row("a**", ["apple", "bean"], "a"),
    Row("deploy＊", ["deployment", "depot"], "a"),
    Row("user*", ["getUserName", "usual"], "a"),
    Row("*ploy", ["deploy", "ploy"], "b"),
    Row("de*oy", ["deploy", "de", "oy"], "b c", (star("de*oy"),)),
    Row("main.p*", ["main.py", "main road", "p"], "a b c", (star("main.p*"),)),
    Row('"blue gre*"', ["blue green", "blue gre"], "b"),
]

NEAR = [
    Row("NEAR(apple pear)", ["apple x pear", "apple " + "x " * 10 + "pear", "apple " + "x " * 11 + "pear"], "a b"),
    Row("NEAR(apple pear, 1)", ["apple x pear", "apple x y pear", "pear apple"], "a c"),
    Row("NEAR(apple pear, 0)", ["apple pear", "apple x pear", "pear apple"], "a c"),
    Row("NEAR(apple pear,2)", ["apple x y pear", "apple x y z pear"], "a"),
    Row('NEAR("apple pie" cream, 2)', ["apple pie with cream", "pie with apple cream"], "a"),
    Row("NEAR(app* pear, 1)", ["apples x pear", "apples x y pear"], "a"),
    Row("NEAR(apple pear plum, 3)", ["apple x pear y plum", "apple x pear y z plum"], "a"),
    Row("NEAR(apple pear, 1) AND plum", ["apple pear plum", "apple pear"], "a"),
    Row("plum NOT NEAR(apple pear, 1)", ["plum apple pear", "plum apple x y pear"], "b"),
    Row("NEAR(apple pear, 1) OR cherry", ["apple pear", "cherry", "apple x y pear"], "a b"),
    Row("NEAR(apple, pear)", ["apple pear", "apple"], "a"),
    Row("NEAR(apple)", ["apple", "near"], "a b", ("NEAR needs two words or more",)),
    Row("NEAR()", ["apple", "near"], "b", ("NEAR needs two words or more",)),
    Row("-NEAR(apple pear, 1)", ["apple pear", "apple x y pear"], "b"),
    Row("plum -NEAR(apple pear, 1)", ["plum apple pear", "plum apple x y pear"], "b"),
    Row("plum NOT -NEAR(apple pear, 1)", ["plum apple pear", "plum apple x y pear"], "b"),
    Row("NEAR(apple -pear)", ["apple pear", "apple"], "a"),
    Row("NEAR(-apple pear, 0)", ["pear apple", "apple x pear"], "a"),
    Row('NEAR(-"apple pie" cream, 1)', ["apple pie cream", "cream"], "a"),
    Row("NEAR(-app* pear, 0)", ["apples pear", "pear"], "a"),
    Row("NEAR(apple pear, -1)", ["apple pear 1", "apple pear"], "a"),
    Row("NEAR(apple pear, 1000)", ["apple " + "x " * 1000 + "pear", "apple " + "x " * 1001 + "pear"], "a"),
    Row("NEAR(apple pear, 1001)", ["apple " + "x " * 1000 + "pear", "apple " + "x " * 1001 + "pear"], "a", (FAR,)),
    Row("NEAR(apple pear, 999999999)", ["apple pear", "apple"], "a", (FAR,)),
    Row("NEAR（apple “pear tree”）", ["apple pear tree", "apple tree pear"], "a"),
    Row("near(apple pear, 1)", ["apple x y pear", "cherry"], "a"),
    Row("NEAR(数据 讨论, 4)", ["讨论了数据", "讨论了昨天的所有数据"], "a"),
]

# ---------------------------------------------------------------- filters

KEYED: list[str | NewMemory] = [
    NewMemory(text="a: tea", key="docs/a?", created=datetime(2026, 3, 11, 9, tzinfo=UTC)),
    NewMemory(text="b: tea", key="docs/b c", created=datetime(2026, 3, 10, 9, tzinfo=UTC)),
    NewMemory(text="c: tea", key="notes"),
    NewMemory(text="d: tea"),
]
LANGUAGES: list[str | NewMemory] = [
    "Die Katze schläft auf dem Sofa im Wohnzimmer",
    NewMemory(text="tea with milk", language="fr"),
    "The cat sleeps on the sofa in the living room",
    "E0502",
]
NOTES: list[str | NewMemory] = [
    NewMemory(
        text="Billing runs on Postgres",
        kind="fact", namespace="decisions", tags=("db", "billing"), source="docs/adr/001.md", session="s1",
        created=datetime(2026, 3, 11, 9, tzinfo=UTC),
    ),
    NewMemory(
        text="Redis holds the cache of billing",
        namespace="patterns", tags=("db", "cache"), source="docs/cache.md", session="s 2", summary="Where the cache is",
        created=datetime(2026, 3, 10, 9, tzinfo=UTC),
    ),
    NewMemory(
        text="Ada Lovelace wrote the first program",
        kind="episode", tags=("two words",), source="chat", metadata={"page": 1},
        created=datetime(2026, 2, 28, 23, 59, tzinfo=UTC),
    ),
    NewMemory(text="Ada likes lunch, and Lovelace is a film", created=datetime(2025, 12, 24, 18, tzinfo=UTC)),
    NewMemory(text="Billing is on holiday", space="work", tags=("db",), created=datetime(2026, 3, 11, tzinfo=UTC)),
]  # fmt: skip

FILTERS = [
    # alone they list, the newest first
    Row("ns:decisions", NOTES, "a"),
    Row("namespace:patterns", NOTES, "b"),
    Row("NS:decisions", NOTES, "a"),
    Row("ns:Decisions", NOTES, ""),
    Row("kind:note", NOTES, "b"),
    Row("kind:preference", NOTES, "d"),  # recognised when it was written
    Row("kind:fact,episode", NOTES, "a > c"),
    Row("session:s1", NOTES, "a"),
    Row('session:"s 2"', NOTES, "b"),
    Row("source:chat", NOTES, "c"),
    Row("source:docs/*", NOTES, "a > b"),
    Row("source:docs/*/00?.md", NOTES, "a"),
    Row("source:docs", NOTES, ""),
    Row('source:"docs/cache.md"', NOTES, "b"),
    Row("source:a[1]/*", [NewMemory(text="x", source="a[1]/b"), NewMemory(text="y", source="a1/b")], "a"),
    Row("source:100%_?", [NewMemory(text="x", source="100%_b"), NewMemory(text="y", source="100 _b")], "a"),
    Row("source:*.MD", [NewMemory(text="x", source="b.md"), NewMemory(text="y", source="b.MD")], "b"),
    Row("source：docs/＊", NOTES, "a > b"),
    # what has no source or session is not from the one that is excluded
    Row("-source:chat", NOTES, "a > b > d"),
    Row("-source:docs/*", NOTES, "c > d"),
    Row("-source:*", NOTES, "d"),
    Row("NOT source:docs/cache.md,chat", NOTES, "a > d"),
    Row("ada NOT source:chat", NOTES, "d"),
    Row("-session:s1", NOTES, "b > c > d"),
    Row('NOT session:s1,"s 2"', NOTES, "c > d"),
    Row("ada -session:s1", NOTES, "c > d"),
    Row("-(source:chat OR session:s1)", NOTES, "b > d"),
    Row("-(source:chat session:s1)", NOTES, "a > b > c > d"),
    Row("NOT (source:chat NOT session:s1)", NOTES, "a > b > d"),
    Row("tag:cache OR NOT source:*", NOTES, "b > d"),
    Row("source:" + "*" * 9, NOTES, "", ("source: a pattern may have 8 wildcards at most; it was read as words",)),
    # tags
    Row("tag:db", NOTES, "a > b"),
    Row("tag:cache,billing", NOTES, "a > b"),
    Row("tag:db tag:cache", NOTES, "b"),
    Row('tag:"two words"', NOTES, "c"),
    Row('tag:"two words",cache', NOTES, "b > c"),
    Row("-tag:db", NOTES, "c > d"),
    Row("tag:db -tag:cache", NOTES, "a"),
    Row("tag:db NOT tag:cache", NOTES, "a"),
    Row("tag:cache OR kind:episode", NOTES, "b > c"),
    Row("(tag:cache OR kind:fact) AND billing", NOTES, "a b"),
    Row("tag:'db'", NOTES, "a > b"),
    Row("tag:'cache',billing", NOTES, "a > b"),
    Row("-tag:'db'", NOTES, "c > d"),
    Row("tag:“two words”", NOTES, "c"),
    Row("tag:＂two words＂,cache", NOTES, "b > c"),
    Row("tag：db", NOTES, "a > b"),
    Row("-tag：db", NOTES, "c > d"),
    Row("\ufefftag:db", NOTES, "a > b"),
    Row("\u200f-tag:\u200edb\u200f", NOTES, "c > d"),
    Row("（tag：cache OR kind：fact） AND billing", NOTES, "a b"),
    Row("tag:unknown", NOTES, ""),
    Row("tag:DB", NOTES, ""),
    Row("tag:db;", NOTES, "a > b"),
    Row("tag:db,,cache", NOTES, "a > b"),
    Row('tag:"a,b"', [NewMemory(text="x", tags=("a,b",)), NewMemory(text="y", tags=("a", "b"))], "a"),
    Row("tag:c++", [NewMemory(text="x", tags=("c++",)), NewMemory(text="y", tags=("c",))], "a"),
    Row("tag:übung", [NewMemory(text="x", tags=("übung",)), NewMemory(text="y", tags=("ubung",))], "a"),
    Row("tag:标签", [NewMemory(text="x", tags=("标签",)), NewMemory(text="y", tags=("标",))], "a"),
    Row("NOT tag:db,cache", NOTES, "c > d"),
    Row("-(tag:db)", NOTES, "c > d"),
    Row("tag:db -(kind:fact)", NOTES, "b"),
    Row("-tag:db -kind:episode", NOTES, "d"),
    # with words
    Row("billing tag:cache", NOTES, "b"),
    Row("billing -tag:cache", NOTES, "a"),
    Row("lunch tag:db", NOTES, ""),
    # NOT ends at the next filter
    Row("billing NOT redis since:7d", NOTES, "a"),
    Row("billing NOT redis until:2026-03-11", NOTES, ""),
    Row("billing NOT redis tag:cache", NOTES, ""),
    Row("billing NOT tag:cache redis", NOTES, "a"),
    Row("NOT tag:cache billing since:7d", NOTES, "a"),
    Row("ada AND NOT lunch kind:episode", NOTES, "c"),
    Row("NOT billing NOT tag:db since:2026", NOTES, "c"),
    Row("billing tag:cache AND", NOTES, "b", (as_word("AND"),)),
    Row("OR billing tag:cache", NOTES, "b", (as_word("OR"),)),
    Row("postgres OR tag:cache", NOTES, "a > b"),
    Row("lovelace NOT kind:episode", NOTES, "d"),
    Row('"ada lovelace" has:tags', NOTES, "c"),
    Row("tag:db, billing", NOTES, "a b"),
    Row("(tag:db) billing", NOTES, "a b"),
    # entities
    Row('entity:"Ada Lovelace"', NOTES, "c"),
    Row("entity:Ada", NOTES, "c > d"),
    Row("entity:redis,postgres", NOTES, "a > b"),
    Row('-entity:"Ada Lovelace" lovelace', NOTES, "d"),
    # times
    Row("since:2026-03-10", NOTES, "a > b"),
    Row("since:today", NOTES, "a"),
    Row("since:2d", NOTES, "a > b"),
    Row("until:2026-03", NOTES, "c > d"),
    Row("until:2026-02-28", NOTES, "d"),
    Row("on:yesterday", NOTES, "b"),
    Row("on:2026-02", NOTES, "c"),
    Row('on:"last month"', NOTES, "c"),
    Row("on:last-month", NOTES, "c"),
    Row("on:2025", NOTES, "d"),
    Row("-on:today tag:db", NOTES, "b"),
    Row("since:2026-02 until:2026-03", NOTES, "c"),
    Row("on:2025-12 OR on:today", NOTES, "a > d"),
    # parts
    Row("has:tags", NOTES, "a > b > c"),
    Row("importance:0.5", NOTES, "a > b > c > d"),
    Row("importance>0.5", NOTES, ""),
    Row("lang:de", LANGUAGES, "a"),
    Row("lang:FR,de", LANGUAGES, "a b"),
    Row("-lang:de", LANGUAGES, "b c d"),
    Row("key:docs/", KEYED, "a > b"),
    Row("tea key:docs/a,notes", KEYED, "a c"),
    Row("tea -key:docs/", KEYED, "c d"),
    Row('key:"docs/b c"', KEYED, "b"),
    Row("KEY:Docs/", KEYED, ""),
    Row("importance:high", NOTES, "", ("importance:high is not a number from 0 to 1",)),
    Row("lovelace importance >= 0.5", NOTES, "c > d"),
    Row("lovelace importance > others", NOTES, "c > d"),
    Row("has:facts", NOTES, "a > d"),  # of that kind, or with facts that are read from the text
    Row("fact-type:preference", NOTES, "d"),
    Row("FACT-TYPE:Preference", NOTES, "d"),
    Row("fact-type:preference,config", NOTES, "d"),
    Row("fact-type:preference fact-type:config", NOTES, ""),
    Row("-fact-type:preference", NOTES, "a > b > c"),
    Row("lovelace -fact-type:preference", NOTES, "c"),
    Row("fact-type:identity", NOTES, ""),
    Row("has:summary", NOTES, "b"),
    Row("has:metadata", NOTES, "c"),
    Row("has:session -has:summary", NOTES, "a"),
    Row("has:summary,metadata", NOTES, "b > c"),
    Row("-has:source", NOTES, "d"),
    Row("has:TAGS", NOTES, "a > b > c"),
    Row("has:Facts,SUMMARY", NOTES, "a > b > d"),
    Row('-has:"Source"', NOTES, "d"),
    # spaces
    Row("space:work", NOTES, "e"),
    Row("billing space:work", NOTES, "e"),
    Row("space:work,default tag:db", NOTES, "a e > b"),
    Row("-space:work billing", NOTES, "a b"),
    Row("space:nowhere", NOTES, ""),
    # what is wrong is read as words
    Row("has:cake lunch", NOTES, "d", ("has:cake is unknown; allowed: facts, tags,",)),
    Row("since:soon lunch", NOTES, "d", ("since:soon is not a time; write it like 7d,",)),
    Row("on:2026-02-30 lunch", NOTES, "d", ("on:2026-02-30 is not a time;",)),
    Row('tag:"" lunch', NOTES, "d", ("tag: has no value; it was read as words",)),
    Row("tag:, lunch", NOTES, "d", ("tag: has no value; it was read as words",)),
    Row("tag: lunch", NOTES, "d"),
    Row("tag:" + many(100), NOTES, "a > b"),
    Row("tag:" + many(101) + " lunch", NOTES, "a b d", ("tag: has 101 values, at most 100 are allowed; it was read",)),
    Row("session:" + many(101), NOTES, "a b", ("session: has 101 values, at most 100 are allowed; it was read",)),
    Row("author:ada", NOTES, "c d", (no_filter("author"),)),
    Row("http://ada", NOTES, "c d"),
    Row("x:ada", NOTES, "c d"),
    Row("pre-tag:db lunch", NOTES, "a b d"),
]

TABLE: dict[str, list[Row]] = {
    "english": ENGLISH,
    "german": GERMAN,
    "french": FRENCH,
    "spanish": SPANISH,
    "nordic": NORDIC,
    "strokes": STROKES,
    "polish": POLISH,
    "turkish": TURKISH,
    "vietnamese": VIETNAMESE,
    "cyrillic": CYRILLIC,
    "greek": GREEK,
    "arabic": ARABIC,
    "hebrew": HEBREW,
    "indic": INDIC,
    "chinese": CHINESE,
    "japanese": JAPANESE,
    "korean": KOREAN,
    "south east asian": SOUTH_EAST_ASIAN,
    "mixed": MIXED,
    "symbols": SYMBOLS,
    "identifiers": IDENTIFIERS,
    "operators": JOINED,
    "odd": ODD,
    "phrases": PHRASES,
    "beginnings": BEGINNINGS,
    "near": NEAR,
    "filters": FILTERS,
}
ROWS = [(group, row) for group, rows in TABLE.items() for row in rows]


class Both:
    """A real store and the reference. Every list of texts has a space of its own, the one with fields the default."""

    def __init__(self, real: Store) -> None:
        self.real = real
        self.reference = MemoryStore()
        self._spaces: dict[int, str] = {}

    def engines(self, texts: Sequence[str | NewMemory]) -> tuple[Nacre, Nacre]:
        known = id(texts) in self._spaces
        space = self._spaces.setdefault(id(texts), DEFAULT_SPACE if texts is NOTES else f"space {len(self._spaces)}")
        both = self._engine(self.real, space), self._engine(self.reference, space)
        for engine in both if not known else ():
            engine.remember_many(texts)
        return both

    def _engine(self, store: Store, space: str) -> Nacre:
        names = (f"{letter} in {space}" for letter in string.ascii_lowercase)

        def named(_: datetime, count: int) -> list[str]:
            return list(islice(names, count))

        return Nacre(store, None, space=space, clock=lambda: NOW, zone=UTC, make_ids=named)


@pytest.fixture(scope="module")
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with Stores(request.param, tmp_path_factory.mktemp("queries")) as made:
        yield Both(made.open())


@pytest.mark.parametrize(
    ("stores", "row"),
    [
        *(pytest.param("sqlite", row, id=f"{group}: {row.query}") for group, row in ROWS),
        *(
            pytest.param("postgres", row, id=f"postgres, {group}: {row.query}", marks=needs_postgres)
            for group, row in ROWS[::5]
        ),
    ],
    indirect=["stores"],
)
def test_a_query_finds_these(stores: Both, row: Row) -> None:
    real, reference = stores.engines(row.texts)
    result = real.search(row.query, mode="keyword")
    assert result == reference.search(row.query, mode="keyword")
    facets = real.facets(row.query)
    assert facets == reference.facets(row.query)
    if not row.query.strip():
        assert facets.total == len(row.texts)  # nothing asked: all are counted
    elif result.did_you_mean is None and ONE_BY_ONE not in result.notes:  # what was found is what was asked
        assert facets.total == len(result.hits)
    _check(result, row)


def _check(result: SearchResult, row: Row) -> None:
    hits = iter(result.hits)
    ranks = [each.split() for each in row.found.split(">") if each.strip()]
    found = [list(islice(hits, len(rank))) for rank in ranks]
    assert [sorted(hit.id[0] for hit in each) for each in found] == [sorted(rank) for rank in ranks]
    assert [hit.id[0] for hit in hits] == [], "these were found, too"
    for better, worse in pairwise(found):
        assert all(_is_better(one, other) for one in better for other in worse)
    assert len(result.notes) == len(row.notes)
    assert all(note.startswith(expected) for note, expected in zip(result.notes, row.notes, strict=True)), result.notes


def _is_better(hit: Hit, other: Hit) -> bool:
    """By its words, or where those are not asked for by its time: not just because ties have to end somehow."""
    if hit.bm25 is None or other.bm25 is None:
        return other.bm25 is None and (hit.bm25 is not None or hit.memory.created > other.memory.created)
    return hit.bm25 > other.bm25


# ---------------------------------------------------------------- the table itself


def _scripts(text: str) -> Iterator[str]:
    """Unicode names of letters begin with their script."""
    return (unicodedata.name(char).split()[0] for char in text if char.isalpha())


def test_the_table_is_in_many_scripts() -> None:
    asked = {script for rows in TABLE.values() for row in rows for script in _scripts(row.query)}
    assert asked >= {
        "LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "DEVANAGARI", "BENGALI", "TAMIL",
        "THAI", "LAO", "KHMER", "MYANMAR", "CJK", "HIRAGANA", "KATAKANA", "HANGUL",
    }  # fmt: skip


def test_the_table_has_every_filter() -> None:
    assert {each.key for row in FILTERS for each in lexer.lex(row.query, KEYS)[0] if each.key} == KEYS
