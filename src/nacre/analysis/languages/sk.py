"""Slovak."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Slovak",
    stop_words="""
aby aj ak ako ale alebo and ani asi až bez bol bola boli bolo bude budem budeme budete budeš budú buď by byť
cez dnes do ešte for ho i iba ich iné iný ja je jeho jej ju k kam každá každé každí každý kde kedy keď koľko
kto ktorou ktorá ktoré ktorí ktorý ku lebo len ma mať medzi menej mi mna mne mnou moja moje musieť my má máte
môcť môj môže na nad naši nech než nie niektorý nič nová nové noví nový nám náš o od odo of on ona oni ono ony
po pod podľa pokiaľ potom pre pred predo preto pretože prečo pri prvá prvé prví prvý práve pýta s sa si sme so
som späť ste svoj svoje svojich svojím svojími sú ta tak takže tam te teda ten tento the tieto tiež to toho
tohoto tom tomto tomuto toto tu tvoj tvojími ty tá táto tú túto tým týmto tě už v vaše viac vo vy vám váš však
všetok z za zo áno či čo ďalšia ďalšie ďalší že ﻿a
""",
)
