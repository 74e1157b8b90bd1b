"""Requests in Chinese, Japanese, Korean and other scripts: values are read, and words not judged."""

from __future__ import annotations

import pytest

from baton.findings.facts import read
from baton.findings.normalise_values import in_digits
from baton.findings.words import in_other_script
from baton.testing import verdict

from .trips import said, trip


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("公司要买120把办公椅，预算3.2万元，3月20日前必须到货", ["120", "32000", "20 March"]),
        ("預算32,000元（含運費），2026年3月2日下單", ["32,000", "2 March", "2026"]),
        ("予算は3万2000円です。型番AB-12を2台、14時30分に", ["32000", "AB-12", "2", "14:30"]),
        ("型号XK7的椅子120把，下午3点", ["XK7", "120", "15:00"]),
        ("3월 20일 오후 2시 30분, 예산 50,000원, 2명", ["20 March", "14:30", "50,000", "2"]),
        ("上午9点到，3時間かかる、1亿2000万元", ["9:00", "3", "120000000"]),
        ("夜8時に2名、朝7時、저녁 6시 30분", ["20:00", "2", "7:00", "18:30"]),
    ],
)
def test_values_are_read_that_touch_the_words(text: str, values: list[str]) -> None:
    assert [f.text for f in read(in_digits(text)).facts if f.kind != "word"] == values


@pytest.mark.parametrize(
    ("text", "is_other"),
    [
        ("公司要买120把办公椅", True),
        ("Закажите 12 стульев", True),
        ("احجز طاولة لأربعة أشخاص", True),
        ("Größe 42, für Łukasz und Ønsk", False),
        ("Sipariş 88 iptal edilsin", False),
        ("Translate 你好 into English for the poster", False),
        ("3 × 4 ≥ 12", False),
    ],
)
def test_a_script_is_told_by_most_letters(text: str, *, is_other: bool) -> None:
    assert in_other_script(text) is is_other


def carried(user: str, prompt: str) -> str:
    return verdict("context_carried", trip("done", said("Done."), user=user, prompt=prompt)).status


def told(result: str, answer: str) -> str:
    trace = trip(result, said(answer), user="余额和时间？", prompt="查询")
    return verdict("result_contradicted", trace).status


@pytest.mark.parametrize(
    ("user", "prompt", "status"),
    [
        (
            "公司要买120把办公椅，预算3.2万元，3月20日前必须到货。",
            "Buy 120 office chairs, budget CNY 32,000, delivery by 20 March.",
            "passed",
        ),
        # What a supplier asked before, and last year's budget: no rule knows these words.
        (
            "公司要买120把办公椅，预算3.2万元，含运费和安装，3月20日前必须到货。之前供应商报过268元一把。",
            "采购120把办公椅，预算32,000元（含运费、含安装），3月20日前到货。",
            "skipped",
        ),
        (
            "来週の3月20日14時30分から4名で会議室を予約してください。予算は3万2000円、去年は28,000円でした。",
            "会議室、3月20日14:30、4名、予算32,000円。",
            "skipped",
        ),
        (
            "Закажите 12 стульев до 20 марта, бюджет 32 000 рублей, в прошлом году было 28 000.",
            "12 стульев, бюджет 32 000 рублей, до 20 марта.",
            "skipped",
        ),
        (
            "请退款订单88421976，金额4310.75元。",
            "退款订单88412976，金额4310.75元。",
            "failed",
        ),
    ],
)
def test_only_swapped_digits_are_a_loss(user: str, prompt: str, status: str) -> None:
    assert carried(user, prompt) == status


@pytest.mark.parametrize(
    ("result", "answer", "status"),
    [
        ("余额是4,310.75元。", "您的余额是4,130.75元。", "failed"),
        ("3月20日14時30分開始、定員40名", "3月20日の14:30に始まり、定員は40名です。", "passed"),
        (
            "A：249元，运费1,800元，合计31,680元",
            "总价31,680元（单价249元，运费1,800元），比预算少320元",
            "passed",
        ),
        ("Поезд отправляется в 19:05.", "Поезд отправляется в 18:05.", "skipped"),
    ],
)
def test_only_swapped_digits_are_against_a_result(result: str, answer: str, status: str) -> None:
    assert told(result, answer) == status
