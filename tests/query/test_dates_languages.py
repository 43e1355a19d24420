"""Times in English and seven other languages: what is read inside a question, and what is not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nacre.query.dates import (
    east_asian,
    find_mentions,
    french,
    german,
    italian,
    may_mention_period,
    parse_period,
    portuguese,
    spanish,
)
from nacre.query.dates.grammar import Form, Language, phrases
from nacre.query.dates.words import fold_accents, fold_widths
from nacre.types.search import Period


def utc(text: str) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None


NOW = datetime(2026, 6, 17, 15, 30, 45, tzinfo=UTC)  # a Wednesday

# The question, the expression in it, where its period begins and ends. An empty text is an open side.
ENGLISH = [
    ("what did we do last summer", "last summer", "2025-06-01", "2025-09-01"),
    ("where were we in the spring", "in the spring", "2026-03-01", "2026-06-01"),
    ("the trip in autumn 2024", "in autumn 2024", "2024-09-01", "2024-12-01"),
    ("what broke last winter", "last winter", "2025-12-01", "2026-03-01"),
    ("the summer of 2023 was hot", "the summer of 2023", "2023-06-01", "2023-09-01"),
    ("what did Ana say at the end of May?", "at the end of May", "2026-05-22", "2026-06-01"),
    ("decisions from early June", "from early June", "2026-06-01", "2026-06-11"),
    ("what shipped in mid June", "in mid June", "2026-06-11", "2026-06-21"),
    ("what shipped in late June", "in late June", "2025-06-21", "2025-07-01"),
    ("who joined in late 2024", "in late 2024", "2024-09-01", "2025-01-01"),
    ("the plan from mid-2025", "from mid-2025", "2025-05-01", "2025-09-01"),
    ("our goals at the beginning of the year", "at the beginning of the year", "2026-01-01", "2026-05-01"),
    ("what happened at the end of last year", "at the end of last year", "2025-09-01", "2026-01-01"),
    ("notes for the week of 4 May", "the week of 4 May", "2026-05-04", "2026-05-11"),
    ("notes for the week of May 6th", "the week of May 6th", "2026-05-04", "2026-05-11"),
    ("what did we ship in the first week of June", "in the first week of June", "2026-06-01", "2026-06-08"),
    ("the last week of May 2025 was busy", "the last week of May 2025", "2025-05-25", "2025-06-01"),
    ("who called last Tuesday", "last Tuesday", "2026-06-16", "2026-06-17"),
    ("revenue in the third quarter", "in the third quarter", "2025-07-01", "2025-10-01"),
    ("revenue of the first quarter of 2024", "of the first quarter of 2024", "2024-01-01", "2024-04-01"),
    ("what have I read recently", "recently", "2026-05-18 15:30:45", "2026-06-17 15:30:45"),
    ("what's Ana up to lately?", "lately", "2026-05-18 15:30:45", "2026-06-17 15:30:45"),
    ("that book from the other day", "from the other day", "2026-06-03 15:30:45", "2026-06-17 15:30:45"),
    ("what do you read these days", "these days", "2026-05-18 15:30:45", "2026-06-17 15:30:45"),
    ("what did we cook at Christmas", "at Christmas", "2025-12-24", "2025-12-27"),
    ("who came on Christmas Eve", "on Christmas Eve", "2025-12-24", "2025-12-25"),
    ("where were we on New Year's Eve?", "on New Year's Eve", "2025-12-31", "2026-01-01"),
    ("the party on new year's eve 2023", "on new year's eve 2023", "2023-12-31", "2024-01-01"),
    ("music of the 90s", "of the 90s", "1990-01-01", "2000-01-01"),
    ("offices in the 1980s", "in the 1980s", "1980-01-01", "1990-01-01"),
    ("what did we do at the weekend", "at the weekend", "2026-06-13", "2026-06-15"),
    ("over the last few days we talked", "over the last few days", "2026-06-14 15:30:45", "2026-06-17 15:30:45"),
    ("costs in the past month", "in the past month", "2026-05-17 15:30:45", "2026-06-17 15:30:45"),
    ("what happened between 3 and 5 May?", "between 3 and 5 May", "2026-05-03", "2026-05-06"),
    ("the fair from 3 to 5 May 2025", "from 3 to 5 May 2025", "2025-05-03", "2025-05-06"),
    ("3–5 May 2026", "3–5 May 2026", "2026-05-03", "2026-05-06"),
    ("May 3-5, who came?", "May 3-5", "2026-05-03", "2026-05-06"),
    ("what changed between March and May", "between March and May", "2026-03-01", "2026-06-01"),
    ("invoices 2026-03-01 - 2026-03-05", "2026-03-01 - 2026-03-05", "2026-03-01", "2026-03-06"),
    ("the letter of 3.5.2025", "of 3.5.2025", "2025-05-03", "2025-05-04"),
    ("what did we plan in June last year", "in June last year", "2025-06-01", "2025-07-01"),
    ("meeting notes from June", "from June", "2026-06-01", "2026-07-01"),
    ("earlier this year we moved", "earlier this year", "2026-01-01", "2027-01-01"),
    ("what did I do mid-March", "mid-March", "2026-03-11", "2026-03-22"),
    ("where did we eat on Valentine's Day?", "on Valentine's Day", "2026-02-14", "2026-02-15"),
    ("everything from the first half of 2025", "from the first half of 2025", "2025-01-01", "2025-07-01"),
    ("the second half of May was calm", "the second half of May", "2026-05-16", "2026-06-01"),
    ("sales in H1 2025", "in H1 2025", "2025-01-01", "2025-07-01"),
    ("what did we ship in Q4 last year", "in Q4 last year", "2025-10-01", "2026-01-01"),
    ("what happened on the 15th?", "on the 15th", "2026-06-15", "2026-06-16"),
    ("what happened on the 31st?", "on the 31st", "2026-05-31", "2026-06-01"),
    ("tasks from two Fridays ago", "from two Fridays ago", "2026-06-05", "2026-06-06"),
    ("several weeks ago he called", "several weeks ago", "2026-05-25", "2026-06-01"),
]
GERMAN = [
    ("was war gestern los", "gestern", "2026-06-16", "2026-06-17"),
    ("wer hat gestern Abend angerufen", "gestern Abend", "2026-06-16", "2026-06-17"),
    ("was haben wir vorgestern beschlossen", "vorgestern", "2026-06-15", "2026-06-16"),
    ("was habe ich heute gemacht?", "heute", "2026-06-17", "2026-06-18"),
    ("was haben wir letzte Woche besprochen", "letzte Woche", "2026-06-08", "2026-06-15"),
    ("Notizen vom letzten Monat", "vom letzten Monat", "2026-05-01", "2026-06-01"),
    ("wo waren wir letztes Jahr", "letztes Jahr", "2025-01-01", "2026-01-01"),
    ("vorletzte Woche ging es schief", "vorletzte Woche", "2026-06-01", "2026-06-08"),
    ("was passierte im Juni?", "im Juni", "2026-06-01", "2026-07-01"),
    ("die Reise im März 2024", "im März 2024", "2024-03-01", "2024-04-01"),
    ("was war im Maerz", "im Maerz", "2026-03-01", "2026-04-01"),
    ("was war Anfang Mai", "Anfang Mai", "2026-05-01", "2026-05-11"),
    ("wer kam Mitte Mai dazu", "Mitte Mai", "2026-05-11", "2026-05-22"),
    ("Ende Mai gab es ein Treffen", "Ende Mai", "2026-05-22", "2026-06-01"),
    ("der Plan von Ende 2024", "von Ende 2024", "2024-09-01", "2025-01-01"),
    ("was hat sich seit März geändert", "seit März", "2026-03-01", ""),
    ("vor drei Tagen kam ein Brief", "vor drei Tagen", "2026-06-14", "2026-06-15"),
    ("vor zwei Wochen war die Messe", "vor zwei Wochen", "2026-06-01", "2026-06-08"),
    ("wer war am Dienstag da", "am Dienstag", "2026-06-16", "2026-06-17"),
    ("was sagte Ana letzten Freitag", "letzten Freitag", "2026-06-12", "2026-06-13"),
    ("wo waren wir letzten Sommer", "letzten Sommer", "2025-06-01", "2025-09-01"),
    ("im Winter war die Heizung kaputt", "im Winter", "2025-12-01", "2026-03-01"),
    ("Umsatz im dritten Quartal", "im dritten Quartal", "2025-07-01", "2025-10-01"),
    ("Umsatz im 1. Quartal 2025", "im 1. Quartal 2025", "2025-01-01", "2025-04-01"),
    ("was war zwischen März und Mai", "zwischen März und Mai", "2026-03-01", "2026-06-01"),
    ("von Montag bis Mittwoch war ich weg", "von Montag bis Mittwoch", "2026-06-15", "2026-06-18"),
    ("das Treffen am 3. Mai", "am 3. Mai", "2026-05-03", "2026-05-04"),
    ("der Vertrag vom 3. Mai 2025", "vom 3. Mai 2025", "2025-05-03", "2025-05-04"),
    ("der Brief vom 3.5.2025", "3.5.2025", "2025-05-03", "2025-05-04"),
    ("was habe ich neulich gelesen", "neulich", "2026-06-03 15:30:45", "2026-06-17 15:30:45"),
    ("kürzlich gelesene Bücher", "kürzlich", "2026-05-18 15:30:45", "2026-06-17 15:30:45"),
    ("in den letzten drei Tagen", "in den letzten drei Tagen", "2026-06-14 15:30:45", "2026-06-17 15:30:45"),
    ("was haben wir am Wochenende gemacht", "am Wochenende", "2026-06-13", "2026-06-15"),
    ("wer kam zu Weihnachten", "zu Weihnachten", "2025-12-24", "2025-12-27"),
    ("wo wohnten wir im Jahr 2019", "im Jahr 2019", "2019-01-01", "2020-01-01"),
    ("seit 2019 wohnt er dort", "seit 2019", "2019-01-01", ""),
]
FRENCH = [
    ("qu'avons-nous fait hier", "hier", "2026-06-16", "2026-06-17"),
    ("qui a appelé hier soir ?", "hier soir", "2026-06-16", "2026-06-17"),
    ("que s'est-il passé avant-hier", "avant-hier", "2026-06-15", "2026-06-16"),
    ("qu'ai-je fait aujourd'hui", "aujourd'hui", "2026-06-17", "2026-06-18"),
    ("de quoi avons-nous parlé la semaine dernière", "la semaine dernière", "2026-06-08", "2026-06-15"),
    ("les notes du mois dernier", "du mois dernier", "2026-05-01", "2026-06-01"),
    ("où étions-nous l'année dernière", "l'année dernière", "2025-01-01", "2026-01-01"),
    ("où étions-nous l’an dernier", "l’an dernier", "2025-01-01", "2026-01-01"),
    ("que s'est-il passé en juin ?", "en juin", "2026-06-01", "2026-07-01"),
    ("le voyage en août 2024", "en août 2024", "2024-08-01", "2024-09-01"),
    ("le voyage en aout 2024", "en aout 2024", "2024-08-01", "2024-09-01"),
    ("qui est arrivé début mai", "début mai", "2026-05-01", "2026-05-11"),
    ("qui est arrivé mi-mai", "mi-mai", "2026-05-11", "2026-05-22"),
    ("la réunion fin mai", "fin mai", "2026-05-22", "2026-06-01"),
    ("le plan de fin 2024", "de fin 2024", "2024-09-01", "2025-01-01"),
    ("qu'est-ce qui a changé depuis mars", "depuis mars", "2026-03-01", ""),
    ("il y a trois jours, une lettre", "il y a trois jours", "2026-06-14", "2026-06-15"),
    ("il y a un mois", "il y a un mois", "2026-05-01", "2026-06-01"),
    ("qui était là mardi", "mardi", "2026-06-16", "2026-06-17"),
    ("qui est venu mardi dernier", "mardi dernier", "2026-06-16", "2026-06-17"),
    ("où étions-nous l'été dernier", "l'été dernier", "2025-06-01", "2025-09-01"),
    ("en hiver la chaudière est tombée en panne", "en hiver", "2025-12-01", "2026-03-01"),
    ("ventes du troisième trimestre", "du troisième trimestre", "2025-07-01", "2025-10-01"),
    ("entre mars et mai, qui a changé", "entre mars et mai", "2026-03-01", "2026-06-01"),
    ("la réunion du 3 mai", "du 3 mai", "2026-05-03", "2026-05-04"),
    ("le contrat signé le 3 mai 2025", "le 3 mai 2025", "2025-05-03", "2025-05-04"),
    ("le 1er mai était férié", "le 1er mai", "2026-05-01", "2026-05-02"),
    ("qu'ai-je lu récemment", "récemment", "2026-05-18 15:30:45", "2026-06-17 15:30:45"),
    ("le livre de l'autre jour", "de l'autre jour", "2026-06-03 15:30:45", "2026-06-17 15:30:45"),
    ("les trois derniers jours", "les trois derniers jours", "2026-06-14 15:30:45", "2026-06-17 15:30:45"),
    ("qu'avons-nous fait le week-end dernier", "le week-end dernier", "2026-06-13", "2026-06-15"),
    ("qui est venu à Noël", "à Noël", "2025-12-24", "2025-12-27"),
    ("où vivions-nous en 2019", "en 2019", "2019-01-01", "2020-01-01"),
    ("la musique des années 90", "des années 90", "1990-01-01", "2000-01-01"),
]
SPANISH = [
    ("qué hicimos ayer", "ayer", "2026-06-16", "2026-06-17"),
    ("quién llamó anoche", "anoche", "2026-06-16 18:00", "2026-06-17 06:00"),
    ("qué pasó anteayer", "anteayer", "2026-06-15", "2026-06-16"),
    ("qué hice hoy", "hoy", "2026-06-17", "2026-06-18"),
    ("de qué hablamos la semana pasada", "la semana pasada", "2026-06-08", "2026-06-15"),
    ("las notas del mes pasado", "del mes pasado", "2026-05-01", "2026-06-01"),
    ("dónde estuvimos el año pasado", "el año pasado", "2025-01-01", "2026-01-01"),
    ("qué pasó en junio?", "en junio", "2026-06-01", "2026-07-01"),
    ("el viaje en agosto de 2024", "en agosto de 2024", "2024-08-01", "2024-09-01"),
    ("quién llegó a principios de mayo", "a principios de mayo", "2026-05-01", "2026-05-11"),
    ("quién llegó a mediados de mayo", "a mediados de mayo", "2026-05-11", "2026-05-22"),
    ("la reunión a finales de mayo", "a finales de mayo", "2026-05-22", "2026-06-01"),
    ("qué ha cambiado desde marzo", "desde marzo", "2026-03-01", ""),
    ("hace tres días llegó una carta", "hace tres días", "2026-06-14", "2026-06-15"),
    ("hace un par de semanas", "hace un par de semanas", "2026-06-01", "2026-06-08"),
    ("quién estuvo el martes", "el martes", "2026-06-16", "2026-06-17"),
    ("quién estuvo el martes pasado", "el martes pasado", "2026-06-16", "2026-06-17"),
    ("dónde estuvimos el verano pasado", "el verano pasado", "2025-06-01", "2025-09-01"),
    ("ventas en el tercer trimestre", "en el tercer trimestre", "2025-07-01", "2025-10-01"),
    ("entre marzo y mayo, quién cambió", "entre marzo y mayo", "2026-03-01", "2026-06-01"),
    ("la reunión del 3 de mayo", "del 3 de mayo", "2026-05-03", "2026-05-04"),
    ("firmamos el 3 de mayo de 2025", "el 3 de mayo de 2025", "2025-05-03", "2025-05-04"),
    ("qué he leído recientemente", "recientemente", "2026-05-18 15:30:45", "2026-06-17 15:30:45"),
    ("el libro del otro día", "del otro día", "2026-06-03 15:30:45", "2026-06-17 15:30:45"),
    ("en los últimos tres días", "en los últimos tres días", "2026-06-14 15:30:45", "2026-06-17 15:30:45"),
    ("qué hicimos el fin de semana", "el fin de semana", "2026-06-13", "2026-06-15"),
    ("quién vino en Navidad", "en Navidad", "2025-12-24", "2025-12-27"),
    ("dónde vivíamos en 2019", "en 2019", "2019-01-01", "2020-01-01"),
    ("quién llamó el miercoles", "el miercoles", "2026-06-17", "2026-06-18"),
]
CHINESE = [
    ("我们昨天讨论了什么", "昨天", "2026-06-16", "2026-06-17"),
    ("前天发生了什么", "前天", "2026-06-15", "2026-06-16"),
    ("上周我们决定了什么？", "上周", "2026-06-08", "2026-06-15"),
    ("上个月的笔记", "上个月", "2026-05-01", "2026-06-01"),
    ("六月发生了什么", "六月", "2026-06-01", "2026-07-01"),
    ("6月发生了什么", "6月", "2026-06-01", "2026-07-01"),
    ("十二月的会议", "十二月", "2025-12-01", "2026-01-01"),
    ("五月底谁来了", "五月底", "2026-05-22", "2026-06-01"),
    ("三天前谁打了电话", "三天前", "2026-06-14", "2026-06-15"),
    ("两周前的邮件", "两周前", "2026-06-01", "2026-06-08"),
    ("去年我们住在哪里", "去年", "2025-01-01", "2026-01-01"),
    ("去年夏天去了哪里", "去年夏天", "2025-06-01", "2025-09-01"),
    ("周二谁来了", "周二", "2026-06-16", "2026-06-17"),
    ("上周二谁来了", "上周二", "2026-06-09", "2026-06-10"),
    ("我最近读了什么书", "最近", "2026-05-18 15:30:45", "2026-06-17 15:30:45"),
    ("2025年6月3日签的合同", "2025年6月3日", "2025-06-03", "2025-06-04"),
    ("5月3日的会议", "5月3日", "2026-05-03", "2026-05-04"),
    ("自三月以来有什么变化", "自三月以来", "2026-03-01", ""),
    ("从三月到五月谁负责", "从三月到五月", "2026-03-01", "2026-06-01"),
    ("三月和五月之间谁负责", "三月和五月之间", "2026-03-01", "2026-06-01"),
    ("第三季度的收入", "第三季度", "2025-07-01", "2025-10-01"),
    ("2019年我们住在哪里", "2019年", "2019-01-01", "2020-01-01"),
    ("三月之前的记录", "三月之前", "", "2026-03-01"),
]
JAPANESE = [
    ("昨日は何を話した?", "昨日", "2026-06-16", "2026-06-17"),
    ("一昨日何があった", "一昨日", "2026-06-15", "2026-06-16"),
    ("先週決めたことは？", "先週", "2026-06-08", "2026-06-15"),
    ("先月のメモ", "先月", "2026-05-01", "2026-06-01"),
    ("6月に何があった", "6月", "2026-06-01", "2026-07-01"),
    ("５月末に誰が来た", "５月末", "2026-05-22", "2026-06-01"),
    ("3日前に電話したのは誰", "3日前", "2026-06-14", "2026-06-15"),
    ("2週間前のメール", "2週間前", "2026-06-01", "2026-06-08"),
    ("去年どこに住んでいた", "去年", "2025-01-01", "2026-01-01"),
    ("去年の夏はどこへ行った", "去年の夏", "2025-06-01", "2025-09-01"),
    ("火曜日に誰が来た", "火曜日", "2026-06-16", "2026-06-17"),
    ("先週の火曜日に誰が来た", "先週の火曜日", "2026-06-09", "2026-06-10"),
    ("最近読んだ本", "最近", "2026-05-18 15:30:45", "2026-06-17 15:30:45"),
    ("2025年6月3日の契約", "2025年6月3日", "2025-06-03", "2025-06-04"),
    ("3月から5月まで担当したのは", "3月から5月まで", "2026-03-01", "2026-06-01"),
    ("3月以降の変更", "3月以降", "2026-03-01", ""),
    ("第3四半期の売上", "第3四半期", "2025-07-01", "2025-10-01"),
    ("2019年はどこに住んでいた", "2019年", "2019-01-01", "2020-01-01"),
]
PORTUGUESE = [
    ("o que decidimos na semana passada?", "na semana passada", "2026-06-08", "2026-06-15"),
    ("quem ligou ontem à noite?", "ontem à noite", "2026-06-16", "2026-06-17"),
    ("o que fizemos há três dias", "há três dias", "2026-06-14", "2026-06-15"),
    ("duas semanas atrás falei com a Ana", "duas semanas atrás", "2026-06-01", "2026-06-08"),
    ("as notas dos últimos 3 meses", "últimos 3 meses", "2026-03-17T15:30:45", "2026-06-17T15:30:45"),
    ("o que mudou nos últimos dias", "nos últimos dias", "2026-06-10T15:30:45", "2026-06-17T15:30:45"),
    ("o que aprendemos nas últimas semanas", "nas últimas semanas", "2026-05-18T15:30:45", "2026-06-17T15:30:45"),
    ("o que gastamos nos últimos meses", "nos últimos meses", "2026-03-19T15:30:45", "2026-06-17T15:30:45"),
    ("o que comemos hoje", "hoje", "2026-06-17", "2026-06-18"),
    ("quem veio anteontem", "anteontem", "2026-06-15", "2026-06-16"),
    ("quem tossiu na noite passada", "na noite passada", "2026-06-16T18:00", "2026-06-17T06:00"),
    ("o que li recentemente", "recentemente", "2026-05-18T15:30:45", "2026-06-17T15:30:45"),
    ("o que ele disse outro dia", "outro dia", "2026-06-03T15:30:45", "2026-06-17T15:30:45"),
    ("notas desde segunda-feira", "desde segunda-feira", "2026-06-15", ""),
    ("quem veio na sexta-feira", "na sexta-feira", "2026-06-12", "2026-06-13"),
    ("quem faltou nesta terça", "nesta terça", "2026-06-16", "2026-06-17"),
    ("o que aconteceu em março de 2025", "em março de 2025", "2025-03-01", "2025-04-01"),
    ("as férias de março passado", "de março passado", "2026-03-01", "2026-04-01"),
    ("reunião de 3 de maio", "de 3 de maio", "2026-05-03", "2026-05-04"),
    ("o que mudou no mês passado", "no mês passado", "2026-05-01", "2026-06-01"),
    ("quanto gastamos neste mês", "neste mês", "2026-06-01", "2026-07-01"),
    ("o que fizemos no fim de semana", "no fim de semana", "2026-06-13", "2026-06-15"),
    ("onde estivemos no último fim de semana", "no último fim de semana", "2026-06-13", "2026-06-15"),
    ("viagem no verão passado", "no verão passado", "2025-06-01", "2025-09-01"),
    ("o frio no inverno de 2024", "no inverno de 2024", "2024-12-01", "2025-03-01"),
    ("as aulas nesta primavera", "nesta primavera", "2026-03-01", "2026-06-01"),
    ("decisões do primeiro trimestre de 2025", "do primeiro trimestre de 2025", "2025-01-01", "2025-04-01"),
    ("tudo antes de 2024", "antes de 2024", "", "2024-01-01"),
    ("entre março e maio de 2025", "entre março e maio de 2025", "2025-03-01", "2025-06-01"),
    ("as metas no início do ano", "no início do ano", "2026-01-01", "2026-05-01"),
    ("a música dos anos 80", "anos 80", "1980-01-01", "1990-01-01"),
    ("os planos no fim de maio", "no fim de maio", "2026-05-22", "2026-06-01"),
    ("o que compramos no Natal", "no Natal", "2025-12-24", "2025-12-27"),
    ("o calor em meados de 2025", "em meados de 2025", "2025-05-01", "2025-09-01"),
    ("o começo do inverno de 2024", "o começo do inverno de 2024", "2024-12-01", "2025-01-01"),
]
ITALIAN = [
    ("cosa abbiamo deciso la settimana scorsa?", "la settimana scorsa", "2026-06-08", "2026-06-15"),
    ("chi ha chiamato ieri sera?", "ieri sera", "2026-06-16", "2026-06-17"),
    ("cosa è successo tre giorni fa", "tre giorni fa", "2026-06-14", "2026-06-15"),
    ("le note degli ultimi 3 mesi", "ultimi 3 mesi", "2026-03-17T15:30:45", "2026-06-17T15:30:45"),
    ("cosa è cambiato negli ultimi giorni", "negli ultimi giorni", "2026-06-10T15:30:45", "2026-06-17T15:30:45"),
    (
        "cosa abbiamo imparato nelle ultime settimane",
        "nelle ultime settimane",
        "2026-05-18T15:30:45",
        "2026-06-17T15:30:45",
    ),
    ("quanto abbiamo speso negli ultimi mesi", "negli ultimi mesi", "2026-03-19T15:30:45", "2026-06-17T15:30:45"),
    ("cosa abbiamo mangiato oggi", "oggi", "2026-06-17", "2026-06-18"),
    ("chi è venuto l'altro ieri", "l'altro ieri", "2026-06-15", "2026-06-16"),
    ("chi ha tossito la notte scorsa", "la notte scorsa", "2026-06-16T18:00", "2026-06-17T06:00"),
    ("cosa ho letto ultimamente", "ultimamente", "2026-05-18T15:30:45", "2026-06-17T15:30:45"),
    ("note da lunedì", "da lunedì", "2026-06-15", ""),
    ("chi è mancato questo martedì", "questo martedì", "2026-06-16", "2026-06-17"),
    ("cosa è successo a marzo 2025", "a marzo 2025", "2025-03-01", "2025-04-01"),
    ("le vacanze di marzo scorso", "di marzo scorso", "2026-03-01", "2026-04-01"),
    ("la gita di questo marzo", "di questo marzo", "2026-03-01", "2026-04-01"),
    ("la riunione del 3 maggio", "del 3 maggio", "2026-05-03", "2026-05-04"),
    ("cosa è cambiato lo scorso mese", "lo scorso mese", "2026-05-01", "2026-06-01"),
    ("dove eravamo il fine settimana scorso", "il fine settimana scorso", "2026-06-13", "2026-06-15"),
    ("dove eravamo lo scorso weekend", "lo scorso weekend", "2026-06-13", "2026-06-15"),
    ("viaggio dell'estate scorsa", "dell'estate scorsa", "2025-06-01", "2025-09-01"),
    ("il freddo nell'inverno 2024", "nell'inverno 2024", "2024-12-01", "2025-03-01"),
    ("le lezioni di questa primavera", "di questa primavera", "2026-03-01", "2026-06-01"),
    ("decisioni del primo trimestre del 2025", "del primo trimestre del 2025", "2025-01-01", "2025-04-01"),
    ("tutto prima del 2024", "prima del 2024", "", "2024-01-01"),
    ("tra marzo e maggio 2025", "tra marzo e maggio 2025", "2025-03-01", "2025-06-01"),
    ("gli obiettivi all'inizio dell'anno", "inizio dell'anno", "2026-01-01", "2026-05-01"),
    ("la musica degli anni 80", "anni 80", "1980-01-01", "1990-01-01"),
    ("i piani alla fine di maggio", "alla fine di maggio", "2026-05-22", "2026-06-01"),
    ("cosa abbiamo comprato a Natale", "a Natale", "2025-12-24", "2025-12-27"),
    ("il caldo a metà 2025", "a metà 2025", "2025-05-01", "2025-09-01"),
    ("l'inizio dell'inverno 2024", "l'inizio dell'inverno 2024", "2024-12-01", "2025-01-01"),
    ("chi ha scritto nel 2019", "nel 2019", "2019-01-01", "2020-01-01"),
]
READ = [*ENGLISH, *GERMAN, *FRENCH, *SPANISH, *PORTUGUESE, *ITALIAN, *CHINESE, *JAPANESE]


@pytest.mark.parametrize(("text", "expected", "start", "end"), READ)
def test_read(text: str, expected: str, start: str, end: str) -> None:
    (found,) = find_mentions(text, NOW, UTC)
    assert text[found.span.start : found.span.end] == expected
    assert found.period == Period(utc(start), utc(end))
    assert parse_period(expected, NOW, UTC) == found.period
    assert may_mention_period(text)


NOT_READ = [
    # months, weekdays and seasons that are people, verbs or things
    *("what does June like", "April's birthday", "hat April angerufen", "May I come", "who is August", "ask Juni"),
    *("before April left we talked", "in June's room", "Wann hat Juli Zeh gelesen", "Mai hat zugesagt", "mars bars"),
    *(
        "in Spring Boot we trust",
        "in Spring we use beans",
        "stocks fall in price",
        "Summer said no",
        "Winter is my cat",
    ),
    *("the spring in my step", "a Christmas tree", "Christmas party budget", "Mardi Gras colours"),
    *("on the mars mission", "a sandwich with mayo", "el mar", "der Sommer-Plan", "Herr Sommer rief an"),
    # the same letters in another language
    *("wer ist hier", "was gibt es hier alles", "il a été élu", "elle a ete la", "ein Tag am Meer", "once upon a time"),
    *(
        "the sept is old",
        "an an-cient text",
        "dix points",
        "neuf vies",
        "don't fin de siècle me",
        "die Uhr",
        "on dit que",
    ),
    # every one of many, and durations
    *("jeden Montag", "montags", "bis Freitag fertig", "chaque lundi", "tous les lundis", "le lundi", "los lunes"),
    *("às segundas", "ogni lunedì", "il lunedì", "segunda opção da lista", "la prima volta", "no 2025 plans"),
    *("Meta 2025", "estate planning", "in estate law", "Santo Domingo", "a 2025 model", "the fine print"),
    *("cada lunes", "每周二开会", "毎週火曜日", "drei Tage lang", "pendant trois jours", "durante tres días", "三个月"),
    *(
        "dans trois jours",
        "in drei Tagen",
        "en tres días",
        "三天",
        "3日間",
        "in her 30s",
        "a while ago",
        "for the last time",
    ),
    # what is to come
    *(
        "nächste Woche",
        "la semaine prochaine",
        "la próxima semana",
        "下周",
        "来週",
        "明天",
        "mañana",
        "demain",
        "übermorgen",
    ),
    # numbers
    *("version 3.5.20256", "10.3.2026.1", "Raum 2019", "salle 2019", "sala 2019", "en 5000", "second 90s hit"),
    *("第3章", "数学", "第一次", "一天到晚", "日本", "上海", "大家好", "クラス"),
    # quoted
    *('der Film "Gestern"', "「昨日」という曲"),
]


@pytest.mark.parametrize("text", NOT_READ)
def test_not_read(text: str) -> None:
    assert find_mentions(text, NOW, UTC) == []


def test_two_scripts() -> None:
    (found,) = find_mentions("ねこ yesterday", NOW, UTC)
    assert found.span == (3, 12)
    assert may_mention_period("ねこ yesterday")


def test_enough_examples() -> None:
    assert len(READ) >= 120
    assert len(set(NOT_READ)) >= 60


# Forms that no question above has: what is read as a whole.
WHOLE = [
    ("am 3.5.", "2026-05-03", "2026-05-04"),
    ("3. bis 5. Mai", "2026-05-03", "2026-05-06"),
    ("in den 90ern", "1990-01-01", "2000-01-01"),
    ("in den letzten Tagen", "2026-06-10 15:30:45", "2026-06-17 15:30:45"),
    ("in den letzten Wochen", "2026-05-18 15:30:45", "2026-06-17 15:30:45"),
    ("in den letzten Monaten", "2026-03-19 15:30:45", "2026-06-17 15:30:45"),
    ("seit drei Tagen", "2026-06-14 15:30:45", ""),
    ("letztes Wochenende", "2026-06-13", "2026-06-15"),
    ("erste Woche im Juni", "2026-06-01", "2026-06-08"),
    ("zweite Juniwoche", "2026-06-08", "2026-06-15"),
    ("übermorgen", "2026-06-19", "2026-06-20"),
    ("letzte Nacht", "2026-06-16 18:00", "2026-06-17 06:00"),
    ("im Q1", "2026-01-01", "2026-04-01"),
    ("die Woche vom 4. Mai", "2026-05-04", "2026-05-11"),
    ("Ende des Sommers 2024", "2024-08-01", "2024-09-01"),
    ("Anfang letzten Jahres", "2025-01-01", "2025-05-01"),
    ("depuis trois jours", "2026-06-14 15:30:45", ""),
    ("du 3 au 5 mai", "2026-05-03", "2026-05-06"),
    ("ces derniers jours", "2026-06-10 15:30:45", "2026-06-17 15:30:45"),
    ("ces dernières semaines", "2026-05-18 15:30:45", "2026-06-17 15:30:45"),
    ("ces derniers mois", "2026-03-19 15:30:45", "2026-06-17 15:30:45"),
    ("cette semaine", "2026-06-15", "2026-06-22"),
    ("ce week-end", "2026-06-20", "2026-06-22"),
    ("ce lundi", "2026-06-15", "2026-06-16"),
    ("cet été", "2026-06-01", "2026-09-01"),
    ("après-demain", "2026-06-19", "2026-06-20"),
    ("demain", "2026-06-18", "2026-06-19"),
    ("la nuit dernière", "2026-06-16 18:00", "2026-06-17 06:00"),
    ("la semaine du 4 mai", "2026-05-04", "2026-05-11"),
    ("juin dernier", "2025-06-01", "2025-07-01"),
    ("le week-end", "2026-06-13", "2026-06-15"),
    ("la première semaine de juin", "2026-06-01", "2026-06-08"),
    ("T3 2025", "2025-07-01", "2025-10-01"),
    ("fin de l'été 2024", "2024-08-01", "2024-09-01"),
    ("début de l'année", "2026-01-01", "2026-05-01"),
    ("desde hace tres días", "2026-06-14", ""),
    ("del 3 al 5 de mayo", "2026-05-03", "2026-05-06"),
    ("en los últimos días", "2026-06-10 15:30:45", "2026-06-17 15:30:45"),
    ("en las últimas semanas", "2026-05-18 15:30:45", "2026-06-17 15:30:45"),
    ("en los últimos meses", "2026-03-19 15:30:45", "2026-06-17 15:30:45"),
    ("esta semana", "2026-06-15", "2026-06-22"),
    ("este verano", "2026-06-01", "2026-09-01"),
    ("pasado mañana", "2026-06-19", "2026-06-20"),
    ("el pasado fin de semana", "2026-06-13", "2026-06-15"),
    ("el pasado lunes", "2026-06-15", "2026-06-16"),
    ("este marzo", "2026-03-01", "2026-04-01"),
    ("marzo pasado", "2026-03-01", "2026-04-01"),
    ("la semana del 4 de mayo", "2026-05-04", "2026-05-11"),
    ("la primera semana de junio", "2026-06-01", "2026-06-08"),
    ("el fin de semana pasado", "2026-06-13", "2026-06-15"),
    ("a finales del verano de 2024", "2024-08-01", "2024-09-01"),
    ("a finales de 2024", "2024-09-01", "2025-01-01"),
    ("a principios de este año", "2026-01-01", "2026-05-01"),
    ("los años 90", "1990-01-01", "2000-01-01"),
    ("T3 de 2025", "2025-07-01", "2025-10-01"),
    ("en verano", "2026-06-01", "2026-09-01"),
    ("最近三天", "2026-06-14 15:30:45", "2026-06-17 15:30:45"),
    ("この3日間", "2026-06-14 15:30:45", "2026-06-17 15:30:45"),
    ("前几天", "2026-06-03 15:30:45", "2026-06-17 15:30:45"),
    ("今天", "2026-06-17", "2026-06-18"),
    ("明天", "2026-06-18", "2026-06-19"),
    ("后天", "2026-06-19", "2026-06-20"),
    ("上上周", "2026-06-01", "2026-06-08"),
    ("这周", "2026-06-15", "2026-06-22"),
    ("下周", "2026-06-22", "2026-06-29"),
    ("上上个月", "2026-04-01", "2026-05-01"),
    ("这个月", "2026-06-01", "2026-07-01"),
    ("下个月", "2026-07-01", "2026-08-01"),
    ("上个季度", "2026-01-01", "2026-04-01"),
    ("本季度", "2026-04-01", "2026-07-01"),
    ("前年", "2024-01-01", "2025-01-01"),
    ("今年", "2026-01-01", "2027-01-01"),
    ("明年", "2027-01-01", "2028-01-01"),
    ("周末", "2026-06-13", "2026-06-15"),
    ("上周末", "2026-06-13", "2026-06-15"),
    ("2024年底", "2024-09-01", "2025-01-01"),
    ("去年底", "2025-09-01", "2026-01-01"),
    ("年初", "2026-01-01", "2026-05-01"),
    ("去年圣诞节", "2025-12-24", "2025-12-27"),
    ("90年代", "1990-01-01", "2000-01-01"),
    ("本周二", "2026-06-16", "2026-06-17"),
    ("今週の火曜日", "2026-06-16", "2026-06-17"),
    ("二十三日前", "2026-05-25", "2026-05-26"),
    ("三月三十一号", "2026-03-31", "2026-04-01"),
    ("dopodomani", "2026-06-19", "2026-06-20"),
]
LANGUAGES = {
    "german": german.GERMAN,
    "french": french.FRENCH,
    "spanish": spanish.SPANISH,
    "portuguese": portuguese.PORTUGUESE,
    "italian": italian.ITALIAN,
}
FORMS = [
    pytest.param(form, language, id=f"{name}: {form.pattern}")
    for name, language in (*LANGUAGES.items(), ("east_asian", east_asian.EAST_ASIAN))
    for form in {id(each): each for some in language.forms.values() for each in some}.values()
]


@pytest.mark.parametrize(("text", "start", "end"), WHOLE)
def test_read_as_a_whole(text: str, start: str, end: str) -> None:
    assert parse_period(text, NOW, UTC) == Period(utc(start), utc(end))


@pytest.mark.parametrize(("form", "language"), FORMS)
def test_there_is_an_example_of_every_form(form: Form, language: Language) -> None:
    texts = {fold_widths(fold_accents(each)) for each in (*(row[1] for row in READ), *(row[0] for row in WHOLE))}
    found = (phrase for text in texts for phrase in phrases(text, 0, language) if phrase.end == len(text))
    assert any(single and single.form is form for phrase in found for single in (phrase.first, phrase.second))
