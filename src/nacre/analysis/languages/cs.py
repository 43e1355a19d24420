"""Czech."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Czech",
    stemmer="czech",
    stop_words="""
a aby ahoj aj ale anebo ani aniž ano asi aspoň az ačkoli až bez beze blízko brzo bude budem budeme budes
budete budeš budou budu by byl byla byli bylo byly bys byt být během chce chceme chcete chceš chci chtít
chtějí chuti ci clanek clanku clanky co coz což cz daleko dalsi další den deset design devět dnes do dobrý
docela dva dvacet dvě dál dále děkuji email ho hodně i jak jako jde je jeden jedna jedno jednou jedou jeho jej
jeji jejich její jemu jen jenom jenž jeste jestli ještě ji jich jimi jinak jine jiné jiz již jsem jses jseš
jsi jsme jsou jste já jí jím jšte k kam každý kde kdo kdy kdyz když ke kolik kromě ktera ktere kteri kterou
ktery která které který kteři kteří ku kvůli ma mají mate me mezi mi mit mnou mně moc mohl mohou moje moji
možná muj musí muze my má málo mám máme máte máš mé mí mít mě můj může na nad nade nam nas nasi naše naši ne
nebo nebyl nebyla nebyli nebyly nechť nedělá nejsi nejsou nemají nemáme nemáte neměl neni není nevadí nez než
nic nich nimi nove novy nové nový nula ná nám námi nás náš ní ním ně něco nějak někde někdo němu o od ode on
ona oni ono ony osm pak po pod podle pokud potom pouze pozdě pořád prave pred pres pri pro proc prostě prosím
proti proto proč prvni první práve pta pět před přede přes přese při re rovně s se sedm si sice skoro smí
smějí snad spolu sta sto strana sté sve svych svym svymi své svých svým svými svůj ta tady tak take takhle
taky takze také takže tam tamhle tamto tato te tebe tebou tedy tema ten tento teto ti tim timto tipy tisíc
tisíce to tobě tohle toho tohoto tom tomto tomuto toto trošku tu tuto tvoje tvá tvé tvůj ty tyto této tím
tímto tě těma třeba tři u určitě uz už v vam vas vase vaše vaši ve vedle večer vice vsak vy vám vámi vás váš
více však vůbec vždy z za zač zda zde ze zpet zpět čau či článek článku články čtyři čí šest že
""",
)
