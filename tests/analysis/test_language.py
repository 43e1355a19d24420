"""The language of a text: right or unknown, never guessed."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from nacre.analysis import language
from nacre.analysis.language import is_english, language_of

SENTENCES = {
    "ar": "اجتماع الفريق يوم الثلاثاء في الساعة العاشرة صباحا | نسيت كلمة المرور الخاصة بالخادم القديم",
    "bg": "Срещата с екипа е във вторник в десет часа | Забравих паролата за стария сървър",
    "bn": "দলের সভা মঙ্গলবার সকাল দশটায় | পুরানো সার্ভারের পাসওয়ার্ড ভুলে গেছি",
    "ca": "La reunió de l'equip és dimarts a les deu del matí | He oblidat la contrasenya del servidor vell",
    "cs": "Schůzka týmu je v úterý v deset hodin dopoledne | Zapomněl jsem heslo ke starému serveru",
    "da": "Holdets møde er på tirsdag klokken ti om formiddagen | Adgangskoden til serveren er blevet glemt af os alle",
    "de": "Die Besprechung des Teams ist am Dienstag um zehn Uhr | Ich habe das Passwort des alten Servers vergessen",
    "el": "Η συνάντηση της ομάδας είναι την Τρίτη στις δέκα | Ξέχασα τον κωδικό του παλιού διακομιστή",
    "en": "The meeting of the team is on Tuesday at ten | I forgot the password of the old server",
    "es": "La reunión del equipo es el martes a las diez | He olvidado la contraseña del servidor antiguo",
    "fa": "جلسه تیم روز سه‌شنبه ساعت ده صبح است | رمز عبور سرور قدیمی را فراموش کرده‌ام",
    "fi": "Tiimin kokous on tiistaina kello kymmenen aamulla | Unohdin vanhan palvelimen salasanan eilen illalla",
    "fr": "La réunion de l'équipe est mardi à dix heures | J'ai oublié le mot de passe de l'ancien serveur",
    "he": "פגישת הצוות ביום שלישי בשעה עשר בבוקר | שכחתי את הסיסמה של השרת הישן",
    "hi": "टीम की बैठक मंगलवार को दस बजे है | मैं पुराने सर्वर का पासवर्ड भूल गया",
    "hr": "Sastanak tima je u utorak u deset sati ujutro | Zaboravio sam lozinku starog poslužitelja",
    "hu": "A csapat megbeszélése kedden délelőtt tízkor lesz | Elfelejtettem a régi szerver jelszavát",
    "id": "Rapat tim diadakan pada hari Selasa pukul sepuluh pagi | Saya lupa kata sandi server yang lama",
    "it": "La riunione della squadra è martedì alle dieci | Ho dimenticato la password del vecchio server",
    "ja": "チームの会議は火曜日の十時です | 古いサーバーのパスワードを忘れました",
    "ko": "팀 회의는 화요일 오전 열 시입니다 | 오래된 서버의 비밀번호를 잊어버렸습니다",
    "mr": "संघाची बैठक मंगळवारी सकाळी दहा वाजता आहे | मी जुन्या सर्व्हरचा पासवर्ड विसरलो आहे",
    "nl": "De vergadering van het team is dinsdag om tien uur | Ik ben het wachtwoord van de oude server vergeten",
    "no": "Møtet til laget er på tirsdag klokka ti om formiddagen | Vi har dessverre glemt passordet til tjeneren vår",
    "pl": "Spotkanie zespołu jest we wtorek o dziesiątej rano | Zapomniałem hasła do starego serwera",
    "pt": "A reunião da equipe é na terça-feira às dez horas | Esqueci a senha do servidor antigo",
    "ro": "Întâlnirea echipei este marți la ora zece dimineața | Am uitat parola serverului vechi",
    "ru": "Встреча команды во вторник в десять часов утра | Я забыл пароль от старого сервера",
    "sk": "Stretnutie tímu je v utorok o desiatej dopoludnia | Zabudol som heslo k starému serveru",
    "sl": "Sestanek ekipe je v torek ob desetih dopoldne | Pozabil sem geslo za stari strežnik",
    "sr": "Састанак тима је у уторак у десет сати ујутру | Заборавио сам лозинку старог сервера",
    "sv": "Lagets möte är på tisdag klockan tio på förmiddagen | Jag har glömt lösenordet till den gamla servern",
    "ta": "குழு கூட்டம் செவ்வாய்க்கிழமை காலை பத்து மணிக்கு | பழைய சேவையகத்தின் கடவுச்சொல்லை மறந்துவிட்டேன்",
    "te": "జట్టు సమావేశం మంగళవారం ఉదయం పది గంటలకు | పాత సర్వర్ పాస్‌వర్డ్ మర్చిపోయాను",
    "th": "การประชุมทีมคือวันอังคารเวลาสิบโมงเช้า | ฉันลืมรหัสผ่านของเซิร์ฟเวอร์เก่า",
    "tr": "Ekip toplantısı salı günü sabah saat onda | Eski sunucunun parolasını unuttum",
    "uk": "Зустріч команди у вівторок о десятій годині ранку | Я забув пароль від старого сервера",
    "ur": "ٹیم کی ملاقات منگل کو صبح دس بجے ہے | میں پرانے سرور کا پاس ورڈ بھول گیا ہوں",
    "vi": "Cuộc họp của nhóm vào thứ ba lúc mười giờ sáng | Tôi quên mật khẩu của máy chủ cũ",
    "zh": "团队会议在星期二上午十点 | 我忘记了旧服务器的密码",
}
UNKNOWN = (
    *("", "   ", "!?", "42", "3.14 + 2", "🎉🎉", "ok", "Ada", "no", "die", "E0502", "東京", "数据库"),
    *("git push --force", "src/app/main.rs:42", "getUserName()", "parse_config(path)", "x = y + z"),
    *("https://example.org/de/haus", "ada@example.org", "x1 = foo(y2)", "café", "naïve"),
)


@pytest.mark.parametrize(
    ("code", "sentence"), [(code, each) for code, row in SENTENCES.items() for each in row.split(" | ")]
)
def test_the_language_of_a_sentence(code: str, sentence: str) -> None:
    assert language_of(sentence) == code


@pytest.mark.parametrize("text", UNKNOWN)
def test_code_names_and_very_short_texts_are_unknown(text: str) -> None:
    assert language_of(text) is None


def test_names_in_latin_letters_do_not_hide_the_language_of_a_script() -> None:
    assert language_of("用 Docker Compose 部署 PostgreSQL 数据库") == "zh"
    assert language_of("Docker と PostgreSQL をインストールする") == "ja"
    assert language_of("Обновили PostgreSQL и Redis на сервере Ubuntu") == "ru"


def test_a_mixed_text_has_the_language_of_most_of_its_sentences() -> None:
    german = (
        "Die Besprechung ist am Dienstag. Wir treffen uns um zehn Uhr im großen Raum. Bitte bringt die Unterlagen mit."
    )
    english = "The meeting is on Tuesday. We meet at ten in the large room. Please bring the documents with you."
    assert language_of(f"{german} See you soon.") == "de"
    assert language_of(f"{english} Bis bald dann.") == "en"
    assert language_of(f"{german[:95]} {english[:95]}") in (None, "de", "en")


def test_a_long_text_is_not_read_to_its_end() -> None:
    text = SENTENCES["fr"].replace("|", ".") + ". "
    assert language_of(text * 10_000) == "fr"


def test_lone_surrogates_and_other_odd_characters_have_no_language() -> None:
    assert language_of("\ud800 \udfff") is None
    assert language_of("\x00\x01 \u2028") is None


def test_what_may_be_english() -> None:
    assert is_english("The meeting of the team is on Tuesday")
    assert is_english("git push --force")
    assert is_english("")
    assert not is_english("Wann ist die Besprechung des Teams?")
    assert not is_english("数据库")


def test_the_tables_are_those_that_their_page_names() -> None:
    folder = Path(language.__file__).parent / "ngrams"
    named = re.findall(r"\| `(\w+\.z)` \| ([0-9,]+) \| `([0-9a-f]{64})` \|", (folder / "README.md").read_text("utf-8"))
    found = [(each.name, each.read_bytes()) for each in sorted(folder.glob("*.z"))]
    assert named == [(name, f"{len(data):,}", hashlib.sha256(data).hexdigest()) for name, data in found]
