"""What a native speaker would try: the memory comes first by words alone, among those of all other questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import nacre
from nacre.analysis.language import language_of
from nacre.embedders.hashing import Hashing

pytestmark = pytest.mark.slow

# A question and the memory that it asks for, by language.
CASES = {
    "de": """
        Häuser stehen leer | Das Haus am Ende der Straße steht seit zwei Jahren leer
        hauser renoviert | Die alten Häuser in der Altstadt werden renoviert
        haeuser verkauft | Wir haben beide Häuser im Frühling verkauft
        Schlüssel Nachbarin | Unsere Nachbarinnen haben die Schlüsseln für den Keller
        Katze gefüttert | Die Katzen werden morgens von Anna gefüttert
        welche Ärzte | Der Arzt hat seine Praxis am Marktplatz
        Geburtstage der Kinder | Der Geburtstag meines Kindes ist im März
        Wo ist das Passwort? | Das Passwort steht im roten Ordner hinter dem Drucker
        STRASSE gesperrt | Die Straße zum Bahnhof ist bis Montag gesperrt
        Verträge kündigen | Den Vertrag mit dem Stromanbieter kündige ich im Herbst
        Fahrräder | Mein Fahrrad steht in der Garage hinter dem Auto
        Vereinsvorsitzender | Der neue Vorsitzende des Vereins wurde gestern gewählt
        süße Äpfel | Im Garten wächst ein süßer Apfel neben der Birne
    """,
    "fr": """
        chevaux | Le cheval de Marie est malade depuis hier
        réunions de l'équipe | La réunion avec les équipes du nord est reportée
        clef du garage | La clef des garages se trouve dans le tiroir
        ecole des enfants | Les écoles de nos enfants ferment en juillet
        voitures vendues | Nous avons vendu la voiture bleue de mon père
        où est le mot de passe ? | Le mot de passe du serveur est dans le coffre
        l'hôpital | Les hôpitaux de la ville manquent de lits
        facture payée | Les factures du plombier ont été payées en mars
        amie de Paris | Mes amies parisiennes arrivent par le train
        oeuvres | Cette œuvre est exposée au musée jusqu'en mai
        qu'aime Paul | Paul aimait surtout les longues promenades en forêt
        boulangeries ouvertes | La boulangerie du coin est ouverte le dimanche
    """,
    "es": """
        reuniones | La reunión con el cliente se canceló ayer
        canciones favoritas | Su canción favorita es la que cantaba su abuela
        contraseñas servidores | La contraseña del servidor nuevo está en la caja fuerte
        contrasena del correo | Cambiamos la contraseña de todos los correos
        niño enfermo | Los niños enfermos se quedaron en casa
        ¿Dónde está la llave? | Las llaves del coche están en la cocina
        paredes blancas | Pintamos la pared del salón de color blanco
        médicos del pueblo | El médico visita a los vecinos cada jueves
        pagar facturas | Pagamos la factura de la luz por internet
        ciudades visitadas | Visitamos aquella ciudad durante el verano
        camión | Los camiones llegan al almacén antes de las seis
        árboles del jardín | Plantamos un árbol en los jardines de la escuela
    """,
    "it": """
        chiavi | La chiave della cantina è sotto il tappeto
        riunione annullata | Le riunioni di giovedì sono state annullate
        città | Le strade della citta vecchia sono strette
        amica di Roma | Le amiche romane di Giulia arrivano sabato
        fatture pagate | Abbiamo pagato la fattura del gas con ritardo
        dov'è la password? | La password del server si trova nel cassetto
        l'ospedale | Gli ospedali della regione assumono infermieri
        libri letti | Ho letto il libro che mi avevi consigliato
        case vendute | La casa al mare fu venduta due anni fa
        dell'università | Le università del nord accettano domande fino a maggio
        gatto nero | I gatti neri dormono sul divano tutto il giorno
        perché viaggiare | Il viaggio in treno costa meno di quello in aereo
    """,
    "pt": """
        reuniões | A reunião com o cliente foi adiada para sexta-feira
        canção preferida | As canções preferidas dela são muito antigas
        senhas | A senha do servidor está guardada no cofre
        chave do carro | As chaves dos carros ficam penduradas na cozinha
        coracao | O médico examinou o coração do meu avô
        onde fica a escola? | As escolas do bairro ficam perto da praça
        faturas pagas | Pagamos a fatura da água no começo do mês
        animais doentes | O animal estava doente e foi levado ao veterinário
        pães | O pão da padaria da esquina é o melhor
        cidades visitadas | Visitamos a cidade velha durante as férias
        irmãos | O meu irmão mora em Lisboa desde criança
        viagens de trem | A viagem de trens pelo interior demora três dias
    """,
    "nl": """
        huizen | Het huis aan de gracht staat al jaren te koop
        sleutel | De sleutels van de schuur hangen naast de deur
        vergaderingen | De vergadering van dinsdag begint een uur later
        katten | Onze kat slaapt graag op de warme verwarming
        waar is het wachtwoord? | De wachtwoorden van de servers staan in de kluis
        facturen betaald | De factuur van de loodgieter hebben wij betaald
        verjaardag | Alle verjaardagen van de kinderen vallen in mei
        fietsen | Mijn fiets staat achter het station
        geënt | De appelboom werd vorig jaar geënt door een tuinman
        boeken gelezen | Dat boek heb ik nog niet gelezen
        brief | De brieven van mijn oma liggen in een doos
        dokters | De dokter komt elke woensdag naar het dorp
    """,
    "sv": """
        husen | Huset vid sjön är byggt av trä
        nycklar | Nyckeln till källaren hänger bakom dörren
        möten | Mötet med kunden flyttades till fredagen
        katter | Katten sover alltid i den gamla fåtöljen
        var är lösenordet? | Lösenorden till servrarna finns i kassaskåpet
        rakningar | Räkningen från elbolaget betalades i mars
        flickor | Flickan i röd jacka bor granne med oss
        bilar sålda | Vi sålde bilen till min kusin i Malmö
        boken | Vår bok om svampar ligger alltid på köksbordet
        läkare | Läkaren kommer till byn varje torsdag
        födelsedagar | Hennes födelsedag firas på sommaren
        träden | Ett träd i trädgården föll under stormen
    """,
    "fi": """
        talo rannalla | Talossa järven rannalla on uusi katto
        talot lähellä | Asumme vanhassa talossa keskustan lähellä
        avaimia oven takana | Kellarin avaimet roikkuvat oven takana
        kirjasto | Kirjastossa on paljon ihmisiä lauantaisin
        kokoukset | Tiistain kokouksessa puhuttiin uudesta budjetista
        missä salasana on? | Palvelimen salasanat ovat kassakaapissa
        kissat | Kissa nukkuu aina lämpimän takan edessä
        laskut | Sähköyhtiön lasku maksettiin maaliskuussa
        lääkäri | Lääkärin vastaanotto on torstaisin
        junalla | Junat etelään lähtevät tunnin välein
        auto | Myimme vanhan automme serkulle syksyllä
        puutarha | Puutarhassa kasvaa omenoita ja päärynöitä
    """,
    "pl": """
        książki | Ta książka o grzybach leży na stole
        klucze | Klucz do piwnicy wisi za drzwiami
        spotkanie | Wtorkowe spotkania zespołu zaczynają się później
        koty | Nasz kot śpi zawsze w starym fotelu
        hasło | Hasła do serwerów są schowane w sejfie
        faktury | Fakturę od hydraulika zapłaciliśmy w marcu
        lekarz | Pracuje z lekarzami w szpitalu za miastem
        samochody | Sprzedaliśmy stary samochód mojemu kuzynowi
        zolw | Żółw mojej siostry mieszka w dużym akwarium
        urodziny | Na urodzinach babci byliśmy wszyscy razem
        dom | W domach nad jeziorem nikt nie mieszka zimą
        drzewa | Stare drzewo w ogrodzie upadło podczas burzy
    """,
    "tr": """
        ev | Evlerimizin çatısı geçen yıl yenilendi
        kitaplar | Kitabı masanın üzerinde unuttum bu sabah
        anahtar | Anahtarlar kapının arkasında asılı duruyor
        toplantı | Toplantıda yeni bütçe hakkında konuştuk
        ışık | Sokaktaki ışıklar gece yarısı sönüyor
        IŞIKLAR açık | Mutfakta ışıkları yine açık bırakmışsın
        isik sondur | Bahçedeki ışığı yatmadan önce söndür
        İstanbul | Gelecek hafta İstanbul'a trenle gidiyoruz
        istanbulda hava | İstanbul'da hava bugün çok sıcak olacak
        parola | Sunucunun parolası kasanın içinde saklanıyor
        kedi | Kedilerimiz eski koltukta uyumayı seviyor
        doktor | Doktorlar perşembe günleri köye geliyor
    """,
    "ru": """
        книги | Эта книга о грибах лежит на столе
        ключи | Ключ от подвала висит за дверью
        встреча | О встречах с клиентом нужно говорить заранее
        кошка | Наши кошки спят в старом кресле
        где пароль? | Пароли от серверов лежат в сейфе
        счёт | Счета за электричество оплачены в марте
        ещё дом | В домах у озера зимой никто не живёт
        врач | Врачи приезжают в деревню по четвергам
        елка | Новогодняя ёлка стоит у окна в гостиной
        машина | Мы продали старую машину двоюродному брату
        день рождения бабушки | На дне рождения у бабушки были все родственники
        деревья | Старое дерево в саду упало во время бури
    """,
    "ar": """
        كتاب جديد | الكتب القديمة موجودة في الغرفة والكتاب الجديد على الطاولة
        المفتاح | مفتاح السيارة معلق خلف الباب في المطبخ
        مدرسة | ذهب الأطفال إلى المدرسة بالحافلة هذا الصباح
        اجتماع | تأجل الاجتماع مع العميل إلى يوم الخميس
        سيارات لابن عمي | بعنا سيارتنا القديمة لابن عمي في الخريف
        مُدِيرٌ | المدير الجديد يعمل في مكتبه حتى المساء
        طبيب | زار الطبيب القرية مرتين خلال الشهر الماضي
        قطة | تنام القطة دائما على الكرسي القديم
        بيت | اشترينا البيت القريب من البحيرة في الصيف
        المستشفى | يعمل أخي ممرضا في مستشفى المدينة
        للشجرة | سقطت الشجرة الكبيرة في الحديقة أثناء العاصفة
        فاتورة | دفعنا فاتورة الكهرباء عن طريق الإنترنت
    """,
    "he": """
        ספר | הספר על הפטריות מונח על השולחן במטבח
        מפתח | שכחתי את המפתח במגירה ליד הדלת
        פגישה | בפגישה עם הלקוח דיברנו על התקציב
        בית | גרנו שנים רבות בבית ליד האגם
        הסיסמה | סיסמה חדשה לשרת שמורה בכספת
        חתול | החתול ישן תמיד על הכורסה הישנה
        רופא | הלכתי לרופא בכפר ביום חמישי
        מכונית | מכרנו את המכונית הישנה לבן דוד
        ירושלים | בשבוע הבא ניסע לירושלים ברכבת
        עץ | העץ הגדול בגינה נפל בזמן הסערה
        חשבון | את החשבון של החשמל שילמנו במרץ
        שָׁלוֹם | שלום רב לכל חברי הוועדה החדשה
    """,
    "vi": """
        chìa khóa | Chìa khóa nhà kho treo ở sau cánh cửa
        chia khoa xe | Anh ấy để chìa khóa xe trong ngăn kéo
        cuộc họp | Cuộc họp với khách hàng được dời sang thứ sáu
        mật khẩu | Mật khẩu của máy chủ được cất trong két sắt
        con mèo | Con mèo luôn ngủ trên chiếc ghế cũ
        Đà Nẵng | Tuần sau chúng tôi đi Đà Nẵng bằng tàu hỏa
        thoi tiet da nang | Thời tiết ở Đà Nẵng hôm nay rất nóng nực
        bác sĩ | Bác sĩ đến làng vào mỗi thứ năm hàng tuần
        má | Má của tôi nấu phở ngon nhất trong vùng
        mã | Mã đơn hàng được gửi qua thư điện tử
        sinh nhật bà | Sinh nhật của bà ngoại vào đầu tháng năm
        hóa đơn điện | Hóa đơn tiền điện đã được trả từ tháng ba
    """,
    "th": """
        กุญแจ | กุญแจห้องใต้ดินแขวนอยู่หลังประตู
        ประชุม | การประชุมกับลูกค้าเลื่อนไปเป็นวันศุกร์
        รหัสผ่าน | รหัสผ่านของเซิร์ฟเวอร์เก็บไว้ในตู้เซฟ
        แมว | แมวของเรานอนบนเก้าอี้ตัวเก่าเสมอ
        หมอ | หมอมาที่หมู่บ้านทุกวันพฤหัสบดี
        รถยนต์ | เราขายรถยนต์คันเก่าให้ลูกพี่ลูกน้อง
        เชียงใหม่ | สัปดาห์หน้าเราจะไปเชียงใหม่โดยรถไฟ
        ต้นไม้ | ต้นไม้ใหญ่ในสวนล้มลงระหว่างพายุ
        วันเกิด | วันเกิดของคุณยายอยู่ในเดือนพฤษภาคม
        ค่าไฟฟ้า | เราจ่ายค่าไฟฟ้าทางอินเทอร์เน็ตแล้ว
        หนังสือ | หนังสือเกี่ยวกับเห็ดวางอยู่บนโต๊ะ
        โรงพยาบาล | พี่ชายทำงานเป็นพยาบาลที่โรงพยาบาลในเมือง
    """,
    "ko": """
        열쇠 | 지하실 열쇠는 문 뒤에 걸려 있습니다
        회의 | 고객과의 회의가 금요일로 연기되었습니다
        비밀번호 | 서버의 비밀번호는 금고에 보관되어 있습니다
        고양이가 | 고양이는 항상 낡은 의자에서 잡니다
        학교에서 | 아이들은 버스를 타고 학교까지 갔습니다
        의사 | 의사가 매주 목요일에 마을로 옵니다
        자동차를 | 우리는 낡은 자동차와 자전거를 팔았습니다
        부산 | 다음 주에 기차로 부산에 갑니다
        나무는 | 정원의 큰 나무가 폭풍에 쓰러졌습니다
        할머니 생신 | 할머니의 생신은 오월 초에 있습니다
        전기 요금 | 전기 요금은 인터넷으로 냈습니다
        병원에서 | 형은 시내 병원의 간호사로 일합니다
    """,
    "zh": """
        钥匙 | 地下室的钥匙挂在门后面
        会议 | 和客户的会议推迟到星期五了
        密码 | 服务器的密码保存在保险箱里
        猫 | 我们家的猫总是睡在旧椅子上
        医生 | 医生每个星期四都会来村里
        汽车 | 我们把旧汽车卖给了表弟
        上海 | 下个星期我们坐火车去上海
        大树 | 花园里的大树在暴风雨中倒了
        奶奶的生日 | 奶奶的生日在五月初
        电费 | 电费已经在网上付过了
        GPT4 | 我们用GPT4写数据库的文档
        医院 | 哥哥在市里的医院当护士
    """,
    "ja": """
        鍵 | 地下室の鍵はドアの後ろに掛かっています
        会議 | お客様との会議は金曜日に延期されました
        パスワード | サーバーのパスワードは金庫に保管してあります
        ﾈｺ | うちのネコはいつも古い椅子で寝ています
        医者 | 医者は毎週木曜日に村に来ます
        自動車 | 古い自動車をいとこに売りました
        京都 | 来週は電車で京都に行きます
        大きな木 | 庭の大きな木が嵐で倒れました
        祖母の誕生日 | 祖母の誕生日は五月の初めです
        電気代 | 電気代はインターネットで払いました
        キノコの本 | キノコについての本は机の上にあります
        病院 | 兄は町の病院で看護師をしています
    """,
    "hu": """
        házak | A tóparti házban télen senki sem lakik
        kulcs | A pince kulcsai az ajtó mögött lógnak
        megbeszélés | A keddi megbeszélésen az új költségvetésről volt szó
        macskák | A macskánk mindig a régi fotelben alszik
        jelszó | A szerver jelszava mindig a széfben van, a jelszó hosszú
        könyvek | A gombákról szóló könyv az asztalon van
        orvos | Az orvosok csütörtökönként jönnek a faluba
        autó | Eladtuk a régi autónkat az unokatestvéremnek
        vonat | A vonatok délre óránként indulnak az állomásról
        születésnap | Nagymama születésnapján mindannyian ott voltunk
        kert | A kertben alma és körte is terem nálunk
        villanyszamla | A villanyszámlát márciusban fizettük ki
    """,
    "cs": """
        knihy | Ta kniha o houbách leží na stole v kuchyni
        klíče | Klíč od sklepa visí za dveřmi
        schůzka | O úterních schůzkách mluvíme každý týden
        kočky | Naše kočka spí vždycky ve starém křesle
        heslo | Hesla k serverům jsou uložena v trezoru
        faktury | Fakturu od instalatéra jsme zaplatili v březnu
        lékař | Do vesnice jezdí lékaři každý čtvrtek
        prodaná auta bratranci | Staré auto jsme prodali mému bratranci
        kun | Bílý kůň stojí za plotem u silnice
        stromy | Starý strom na zahradě spadl během bouřky
        vlak | Vlaky na jih odjíždějí každou hodinu
        narozeniny | Na narozeninách babičky jsme byli všichni
    """,
}
ENGLISH = (
    "The key of the cellar hangs behind the door",
    "The meeting with the customer was moved to Friday",
    "The password of the server is in the safe",
    "Our cat always sleeps in the old armchair",
    "A doctor comes to the village every Thursday",
    "parse_config fails with E0502 in src/app/main.rs:42",
)


def cases() -> list[tuple[str, str, str]]:
    split = [(code, *line.strip().split(" | ")) for code, lines in CASES.items() for line in lines.strip().splitlines()]
    return [(code, question, text) for code, question, text in split]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nacre.Nacre]:
    path: Path = tmp_path_factory.mktemp("languages") / "memories.db"
    with nacre.open(path, embedder=Hashing(), extract=False, log=False) as engine:
        for code in CASES:
            texts = [text for of, _, text in cases() if of == code]
            engine.remember_many(nacre.NewMemory(text=text, space=code) for text in (*texts, *ENGLISH))
        yield engine


def test_there_are_ten_cases_of_fifteen_languages() -> None:
    assert len(CASES) >= 15
    assert all(len(lines.strip().splitlines()) >= 10 for lines in CASES.values())


@pytest.mark.parametrize(("code", "question", "text"), cases())
def test_a_native_speaker_finds_it(memory: nacre.Nacre, code: str, question: str, text: str) -> None:
    found = memory.search(question, mode="keyword", where=nacre.Filter(spaces=[code]), limit=3)
    assert [hit.memory.text for hit in found.hits][:1] == [text]


@pytest.mark.parametrize("code", CASES)
def test_most_memories_are_known_to_be_in_their_language(code: str) -> None:
    texts = [text for of, _, text in cases() if of == code]
    found = [language_of(text) for text in texts]
    assert found.count(code) >= 0.7 * len(texts)
    assert set(found) <= {code, None}
