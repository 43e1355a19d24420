"""Vietnamese."""

from __future__ import annotations

from nacre.analysis.languages.language import Language

LANGUAGE = Language(
    name="Vietnamese",
    stop_words="""
ai alô amen anh ba bao biết buổi bà bài bác bán bèn béng bên bông bước bạn bản bấy bằng bển bệt bị bỏ bỗng bộ
bớ bởi bức cao cha chiếc cho choa chung chuyển chuyện chính chú chúng chăng chơi chưa chậc chắc chỉ chỉn chị
chịu chọn chớ chợt chủn chứ con cuối cuốn cuộc càng các cách cái cây còn có cô cùng căn cũng cơ cơn cả cấp cần
cậu của cứ do duy dài dành dào dì dù dùng dưới dạ dẫn dẫu dễ dữ em giảm giống giờ giữ giữa gây gì gần gặp gồm
hay hiểu hoặc hãy hơn hết họ hỏi khi khiến khoảng khá khác khách khó không khỏi kể loại luôn là làm lâu lên
lòng lúc lượng lại lấy lần lớn lời mang muốn mà mình mạnh mất mấy mọi mối mỗi một mới mở mợ mức nay ngay nghe
nghen nghĩ nghỉm ngoài ngoải nguồn ngày ngôi ngươi người ngọn ngọt ngồi nhanh nhau nhiêu nhiều nhà nhé nhìn
nhóm như nhưng nhất nhận nhằm nhỉ nhỏ nhớ nhờ những nào này nên nó nóc nói năm nơi nước nấy nặng nếu nền nọ nớ
nữa oái pho phè phía phóc phót phải phần phắt phỏng phốc phụt phứt qua quay quá quả quận ra riêng riệt rày ráo
rén rích rõ răng rất rằng rồi rứa sang sao sau so suýt sáng sì sất sắp sẽ số sớm sự tanh tay thanh theo thiếu
thoạt thoắt thuần thuộc thà tháng thêm thì thích thím thôi thường thấp thấy thẩy thậm thật thế thếch thỏm thốc
thốt thộc thứ thửa tin toà toẹt trong tránh trên trước trả trển trệt trỏng tuy tuổi tên tênh tìm tính tôi tăng
tại tạo tấm tấn tắp tọt tốt tột tớ tới từ từng tự veo việc và vài vào vâng vèo vì vùng vượt vẫn vậy về với vở
vụt vừa xa xem xin xoét xoẳn xoẹt xuể xuống xệp à ào á ái áng ít ông úi ý ăn đang điều điểm đáng đâu đây đã đó
đúng đưa được đạt đầy đặt đến đều để đủ ơ ơi ư ạ ấy ắt ồ ổng ớ ờ ở ủa ừ ử
""",
)
