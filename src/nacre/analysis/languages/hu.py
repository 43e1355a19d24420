"""Hungarian."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Hungarian",
    stemmer="hungarian",
    stop_words="""
a abban ahhoz ahogy ahol aki akik akkor alatt amely amelyek amelyekben amelyeket amelyet amelynek ami amikor
amit amolyan amíg annak arra arról az azok azon azonban azt aztán azután azzal azért be belül benne bár cikk
cikkek cikkeket csak de e ebben eddig egy egyes egyetlen egyik egyre egyéb egész ehhez ekkor el ellen elsõ
elég elõ elõször elõtt emilyen ennek erre ez ezek ezen ezt ezzel ezért fel felé hanem hiszen hogy hogyan hol
hány hát ide igen ill ill. illetve ilyen ilyenkor is ismét ison itt jobban jó jól kell kellett keressünk
keresztül ki kívül között közül le legalább legyen lehet lehetett lenne lenni lesz lett maga magát majd meg
mellett mely melyek melyik mennyi mert mi mikor milyen minden mindenki mindent mindig mint mintha mit mivel
miért most már más másik még míg nagy nagyobb nagyon ne nekem neki nem nincs néha néhány nélkül oda olyan ott
pedig persze rá s saját sem semmi sok sokat sokkal szemben szerint szinte számára szét talán te tehát teljes
ti tovább továbbá több ugyanis utolsó után utána vagy vagyis vagyok valaki valami valamint való van vannak
vele vissza viszont volna volt voltak voltam voltunk által általában át én éppen és így õ õk õket ön össze úgy
új újabb újra
""",
)
