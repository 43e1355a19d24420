"""Italian."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Italian",
    stemmer="italian",
    intents={
        "troubleshoot": r"\b(?:errore|errori|guasto|fallisce|non (?:funziona|parte|si avvia|carica))\b",
        "comparison": (
            r"\bdifferenz[ae] (?:tra|fra)\b|\brispetto a\b|\b(?:meglio|migliore|peggio|più veloce) (?:di|del|"
            r"della|che)\b"
        ),
        "how-to": r"^come (?:posso|possiamo|si|faccio|facciamo|devo|\w+re)\b",
        "location": (r"^dov['’]?\s?è\b|^dove (?:sono|si trova|si trovano|trovo|posso)\b|^in quale (?:file|cartella)\b"),
        "explanation": r"^perch[ée]\b",
    },
    stop_words="""
a abbia ad adesso agl agli ai al alcuno all alla alle allo allora altri altro anche ancora assai avemmo avendo
avere avesse avessi aveste avesti avete aveva avevi avevo avrai avrei avremo avrete avrà avrò avuta avute
avuti avuto bene che chi ci cio cogli coi col come con contro cosa cosi cui da dagl dagli dai dal dall dalla
dalle dallo degl degli dei del dell della delle dello dentro deve di dopo dov dove due ebbe ebbero ebbi ecco
ed egli era erano eri ero essere faccia faccio faceva facevi facevo fai fanno farai fare farei faremo farete
farà farò fece fecero feci fine fino fosse fossi foste fosti fra fu fui fummo fuori furono gia gli grande ha
hai hanno ho il in invece io la lavoro le lei li lo loro lui lungo ma mai me meglio mi mia mie miei mio molti
molto ne negl negli nei nel nell nella nelle nello no noi non nostra nostre nostri nostro nove nuovo ogni
oltre ora otto peggio per perche perché pero però piu più poco poi primo puo quale quali quando quanta quante
quanti quanto quasi quella quelle quelli quello questa queste questi questo qui quindi salvo sara sarai sarei
saremo sarete sarà sarò se sei sembra sempre senza sette si sia siamo siano siate siete solo sono sopra sotto
sta stai stando stanno starai starei starà starò stava stavi stavo stemmo stesse stessi stesso steste stesti
stette stetti stia stiamo stiano stiate sto su sua subito sue sugl sugli sui sul sull sulla sulle sullo suo
suoi tanto te ti tra tranne tre tu tua tue tuo tuoi tutta tutte tutti tutto ultimo un una uno va verso vi voi
volte vostra vostre vostri vostro
""",
)
