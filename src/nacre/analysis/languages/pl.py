"""Polish."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Polish",
    stemmer="polish",
    stop_words="""
a aby ach acz aj albo ale ależ ani aż bardzo bez bo bowiem by byli bym być był była było były będzie będą cali
cała cały chce choć ci ciebie cię co coraz coś czasem czemu czy czyli często daleko dla dlaczego do dobrze
dokąd dość dużo dwa dwaj dwie dwoje dziś gdy gdyby gdyż gdzie gdzieś go godz i ich ile im inna inne inny
innych iv ix iż ja jak jakaś jakby jaki jakie jakiś jakiż jako jakoś je jeden jedna jednak jedno jednym jego
jej jemu jest jestem jeśli jeżeli już ją każdy kiedy kilka kilku kimś kto ktoś która które której który którym
którzy ku lecz lub ma mają mam mamy mało mi miał mimo między mnie mną mogą moi moim moja moje może można mu
musi my mój na nad nam nami nas nasi nasz nasza nasze nawet nic nich nie niech niego niej niemu nigdy nim nimi
nią niż no o obok od ok około on ona one oni ono oraz oto owszem pan pana pani po pod pomimo ponad poza prawie
przed przede przez przy raz razie roku sam sama się skąd sobie sobą sposób swoje są ta tak taka taki takich
takie także tam te tego tej tel temu ten teraz też to tobie tobą toteż totobą trzeba tu tutaj twoi twoim twoja
twoje twym twój ty tych tylko tym tys tzw tę u vi vii viii w wam wami was wasi wasz wasza wasze we według wie
wiele wielu więc więcej wtedy wy wśród xi xii xiii xiv xv z za zawsze zaś ze znowu znów został żaden żadna
żadne że żeby
""",
)
