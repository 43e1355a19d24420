"""Indonesian."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Indonesian",
    stemmer="indonesian",
    stop_words="""
ada adalah adanya adapun agak agar akan aku akulah amat anda antar antara apa apaan apakah apatah atau bagai
bagaimana bagi bahkan bahwa banyak begini begitu belum berapa biasa bila bisa boleh buat bukan cuma dahulu
dalam dan dapat dari dekat demi dengan depan di dia dialah dini diri disini dong dulu enggak entah hal hampir
hanya harus hendak hingga ia ialah ibarat ingin ini inikah inilah itu itukah itulah jangan jika juga justru
kala kalau kalian kami kamu kan kapan karena ke kecil kenapa kepada ketika kini kita kok lagi lagian lah lain
lalu lama lebih macam maka makin malah mampu mana masih masing mau maupun memang mengapa mereka meski nah
namun nanti nyaris oleh pada paling pantas para pasti per pernah pula pun saat saja saling sama sambil sampai
sana sangat saya se sebab sebuah sedang segala segera sejak sekali sela selain selaku selalu selama sempat
semua semula seolah sering serta serupa sesaat sesama setiap siapa sini suatu sudah supaya tadi tak tanpa tapi
telah tentu tetapi tiap tidak toh untuk waduh wah wahai walau wong yaitu yakni yang
""",
)
