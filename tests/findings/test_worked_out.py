"""Values that a caller works out, converts or splits raise no alarm, and changed values still do."""

from __future__ import annotations

import pytest

from baton.testing import build, verdict, verdicts

from .trips import said, trip


def carried(user: str, prompt: str) -> str:
    trace = trip("done", said("Done."), user=user, prompt=prompt)
    return verdict("context_carried", trace).status


def told(user: str, prompt: str, result: str, answer: str) -> str:
    trace = trip(result, said(answer), user=user, prompt=prompt)
    return verdict("result_contradicted", trace).status


SEATS = "4 tickets for the Brahms on Sunday at 19:30, one for a wheelchair, one beside it. Up to 45 EUR each."
TRIP_NIGHTS = "7 nights on Sicily from 3 May for 2 adults, some in Palermo and some by the sea, at most 900 EUR."


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            SEATS,
            "Brahms, Sunday 19:30: 1 wheelchair place, 1 companion seat, 2 further seats. At most 45 EUR each.",
        ),
        (
            TRIP_NIGHTS,
            "Sicily from 3 May, 2 adults: 3 nights in Palermo, then 4 nights by the sea. At most 900 EUR.",
        ),
        (
            "Bestell für Samstag Mittagessen für 11 Personen ins Büro 204, darunter Vegetarier, höchstens 15 EUR pro Kopf.",
            "Mittagessen am Samstag, Büro 204: 8 Menüs mit Fleisch und 3 vegetarische, höchstens 15 EUR pro Kopf.",
        ),
        (
            "Réserve une table pour 6 au Chai le 14 juin à 20 h, avec des enfants.",
            "Table au Chai, 14 juin, 20 h : 4 adultes, 2 enfants.",
        ),
        (
            "Reserva un apartamento para 5 en Nerja del 4 al 9 de julio, con niños, máximo 130 EUR.",
            "Apartamento en Nerja, 4-9 de julio: dos adultos y tres niños, máximo 130 EUR.",
        ),
        (
            "Book 5 rooms at the Krone for 12 June, doubles where possible, breakfast at 7:15.",
            "Krone, 12 June, breakfast at 7:15: doubles: 3; singles: 2.",
        ),
        (
            "Print 250 flyers, some of them in Welsh, by Thursday, 90 g paper.",
            "Flyers on 90 g paper by Thursday: English 170, Welsh 80.",
        ),
    ],
)
def test_a_count_is_carried_by_its_parts(user: str, prompt: str) -> None:
    assert carried(user, prompt) != "failed"


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            SEATS,
            "Brahms, Sunday 19:30: tickets, one for a wheelchair, one beside it. Up to 45 EUR each.",
        ),
        (
            "Reserve 5 seats at the Krone for 12 June, breakfast at 7:15.",
            "Krone: seats for 12 June, breakfast at 7:15.",
        ),
        (
            "Print 250 flyers in English by Thursday, 90 g paper.",
            "Print 520 flyers in English by Thursday, 90 g paper.",
        ),
        (
            "Réserve une table pour 6 au Chai le 14 juin à 20 h.",
            "Réserve une table pour 8 au Chai le 14 juin à 20 h.",
        ),
        (
            "Bestell für Samstag 11 Menüs ins Büro 204, höchstens 15 EUR pro Kopf.",
            "Bestell für Samstag 17 Menüs ins Büro 204, höchstens 15 EUR pro Kopf.",
        ),
    ],
)
def test_a_count_that_is_missing_or_changed_is_found(user: str, prompt: str) -> None:
    assert carried(user, prompt) == "failed"


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Freezer K-07 rang at 3:20, it's -58 instead of -80. Is there room in another -80 for 9 racks (700 tubes)?",
            "Room in -80 freezers for 9 racks (700 tubes), near K-07.",
        ),
        (
            "Meter 55-A shows 40 instead of 60 since Monday. Find a free 60 A connection in hall 3.",
            "Find a free 60 A connection in hall 3.",
        ),
        (
            "The shop delivered 9 chairs instead of 12. Ask them for the 12 we ordered, order 7731.",
            "Order 7731 was for 12 chairs. Ask the shop for the chairs that are missing.",
        ),
        (
            "We had the 8:00 slot rather than the 9:00. Is the 9:00 still free on Tuesday?",
            "Is the 9:00 slot free on Tuesday?",
        ),
        (
            "Der Kessel läuft mit 48 statt 60 Grad. Such eine Firma, die ihn heute auf 60 Grad bringt, Bau 4.",
            "Firma gesucht, die den Kessel in Bau 4 heute wieder auf 60 Grad bringt.",
        ),
        (
            "Le congélateur F3 est à -55 au lieu de -80. Trouve de la place à -80 pour 6 racks.",
            "Trouve de la place à -80 pour 6 racks, près du F3.",
        ),
        (
            "La cámara 2 marca 9 grados en vez de 4. Busca sitio a 4 grados para 30 cajas.",
            "Busca sitio a 4 grados para 30 cajas.",
        ),
    ],
)
def test_a_fault_that_a_user_states_is_no_limit(user: str, prompt: str) -> None:
    assert carried(user, prompt) != "failed"


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Book the 9:00 instead of the 8:00 for Ms Ito, room 12.",
            "Book the 8:00 for Ms Ito, room 12.",
        ),
        ("Please use port 8443 instead of 8080 on gw-3.", "Use port 8080 on gw-3."),
        (
            "Refund 40 EUR for order 7731 to the gift card instead of the credit card.",
            "Refund 40 EUR for order 7731 to the credit card.",
        ),
        (
            "Nimm Raum 214 statt Raum 108 für das Treffen am 3. Mai.",
            "Nimm Raum 108 für das Treffen am 3. Mai.",
        ),
        (
            "Mets le rendez-vous à 15:30 au lieu de 14:00 avec Mme Roux.",
            "Mets le rendez-vous à 14:00 avec Mme Roux.",
        ),
        (
            "Book the shared desk 214 instead of desk 108 for 3 May.",
            "Book the shared desk 108 for 3 May.",
        ),
        ("Pon 18 mesas en vez de 24 en la sala B.", "Pon 24 mesas en la sala B."),
    ],
)
def test_what_a_user_wants_instead_is_a_limit(user: str, prompt: str) -> None:
    assert carried(user, prompt) == "failed"


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Concrete for a slab of 27 ft by 14 ft, 5 inches thick, plus 5 % waste, Thursday at 7:00, with a pump.",
            "Concrete for a slab, 4.68 m³ incl. 5 % waste, Thursday at 7:00, with a pump.",
        ),
        (
            "How much gravel do we need for a path of 14 m by 1.2 m, 8 cm deep? Order it for Friday from Kolb.",
            "Kolb: price and delivery on Friday of 1.35 m³ of gravel for a path.",
        ),
        (
            "Paint for two walls, 5.2 m wide and 2.6 m high each, two coats, matt white, by Tuesday.",
            "Matt white paint for 27 m² of wall, two coats, by Tuesday.",
        ),
        (
            "Teppich für ein Zimmer, 4,1 m auf 3,6 m, mit 8 % Verschnitt, Lieferung am 12. März.",
            "Teppich, 15,94 m² inkl. 8 % Verschnitt, Lieferung am 12. März.",
        ),
        (
            "Du carrelage pour une pièce de 3,5 m sur 2,8 m, livraison le 4 mai chez Brun.",
            "Brun : 9,8 m² de carrelage, livraison le 4 mai.",
        ),
        (
            "The pump (2.2 kW) runs 9 hours a day. What does that cost a month at Volt's night tariff?",
            "Volt's night tariff: cost of 594 kWh a month for a pump?",
        ),
        (
            "We ride 18 km/h for 5 hours a day from Passau on 3 June. Find a hotel with a shed where we end up.",
            "Hotel with a shed about 90 km from Passau, by bike, 3 June.",
        ),
        (
            "Catering for 32 people on 9 May, 24 EUR a head, no pork.",
            "Catering on 9 May, no pork, total budget 768 EUR.",
        ),
        (
            "Order 40 lamps at 12.50 each from Halo and pay by card 77-1.",
            "Halo: lamps for 500.00 in total, pay by card 77-1.",
        ),
    ],
)
def test_a_quantity_that_is_worked_out_carries_its_factors(user: str, prompt: str) -> None:
    assert carried(user, prompt) != "failed"


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Carpet for a room of 41 m², 8 % waste, delivery on 12 March.",
            "Carpet for a room of 14 m², 8 % waste, delivery on 12 March.",
        ),
        (
            "Order 15 m³ of gravel for Friday at 7:30 from Kolb.",
            "Order 51 m³ of gravel for Friday at 7:30 from Kolb.",
        ),
        (
            "Order 40 lamps of 60 cm from Halo and pay by card 77-1.",
            "Order lamps of 60 cm from Halo and pay by card 77-1.",
        ),
        (
            "Catering for 32 people on 9 May, 24 EUR a head, no pork.",
            "Catering for 23 people on 9 May, 24 EUR a head, no pork.",
        ),
        (
            "Schneide 6 Bretter auf 182 cm, Lärche, bis Freitag.",
            "Schneide 6 Bretter auf 128 cm, Lärche, bis Freitag.",
        ),
    ],
)
def test_a_quantity_that_is_changed_or_missing_is_found(user: str, prompt: str) -> None:
    assert carried(user, prompt) == "failed"


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "After my father's funeral (Friday 11:00, St. Kilian) we'd like a simple lunch for 35, quiet.",
            "Funeral lunch on Friday from about 12:15, 35 people, simple, quiet, near St. Kilian.",
        ),
        (
            "My train gets in at 17:40 on 3 May. Book a table for 2 near the station in Ulm.",
            "Table for 2 near the station in Ulm, 3 May, 18:15.",
        ),
        (
            "The ceremony ends at 14:00. Book a boat for 20 people afterwards, pier 3, on 8 June.",
            "Boat for 20 people, pier 3, 8 June, at 14:45.",
        ),
        (
            "Nach der Trauung (Samstag, 13:00, Rathaus) hätten wir gern einen Sektempfang für 24 Personen.",
            "Sektempfang für 24 Personen am Samstag ab 13:45, beim Rathaus.",
        ),
        (
            "Après le concert, qui finit à 22:00, il nous faut un taxi pour 4 devant la salle, le 3 mai.",
            "Taxi pour 4 devant la salle, le 3 mai à 22:20.",
        ),
        (
            "Mi vuelo llega a las 9:30 el 4 de junio. Reserva un coche para 5 en Málaga.",
            "Coche para 5 en Málaga, 4 de junio, a las 10:30.",
        ),
        (
            "We have to be at the church by 15:00 on 2 May. Order a minibus for 12 from the Lamm.",
            "Minibus for 12, 2 May, pick-up at the Lamm at 14:20 for the church.",
        ),
        (
            "I've got a meeting until 12:30 on Thursday, book the physio for me after that, 40 minutes, Dr. Lund.",
            "Physio with Dr. Lund on Thursday, 40 minutes, at 13:00 or later.",
        ),
        (
            "Before the match (kick-off 20:45, 6 May) we'd like pizza for 8 at Nino's.",
            "Nino's: table for 8 on 6 May at 18:30, pizza.",
        ),
    ],
)
def test_a_time_of_another_event_is_not_replaced(user: str, prompt: str) -> None:
    assert carried(user, prompt) != "failed"


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Book a simple lunch for 35 on Friday at 11:00 near St. Kilian, quiet.",
            "Lunch for 35 near St. Kilian, simple, quiet, on Friday at 12:15.",
        ),
        (
            "Book a table for 2 near the station in Ulm on 3 May at 17:40.",
            "Table for 2 near the station in Ulm, 3 May, 14:40.",
        ),
        (
            "Bestell ein Taxi für 4 auf 22:10 am 3. Mai vor die Halle.",
            "Bestell ein Taxi für 4 auf 20:10 am 3. Mai vor die Halle.",
        ),
        (
            "Reserva un coche para 5 en Málaga el 4 de junio a las 9:30.",
            "Coche para 5 en Málaga, 4 de junio, a las 3:30.",
        ),
    ],
)
def test_another_time_of_what_was_asked_for_is_found(user: str, prompt: str) -> None:
    assert carried(user, prompt) == "failed"


LOG = "07:12 job starts\n07:40 first error\n08:05 queue full\n08:31 restart, all well"


@pytest.mark.parametrize(
    ("user", "prompt", "result", "answer"),
    [
        (
            "Timeline of the outage in UTC, please.",
            "What happened, with times? The tool shows CEST, leave it at that.",
            LOG,
            "05:12 job starts\n05:40 first error\n06:05 queue full\n06:31 restart, all well",
        ),
        (
            "When was what?",
            "What happened?",
            LOG,
            "The job started at 1:12, the first error came at 1:40, the queue was full at 2:05.",
        ),
        (
            "When's the call with Chennai?",
            "When is the call?",
            "Call at 14:00 IST, room Neem, 45 minutes.",
            "The call is at 10:30 our time, in room Neem.",
        ),
        (
            "Wann landet er, in unserer Zeit?",
            "Landung von LH 441?",
            "LH 441: Landung 13:25 Ortszeit, Gate E9.",
            "LH 441 landet um 20:25 bei uns, Gate E9.",
        ),
        (
            "À quelle heure est le match chez nous ?",
            "Heure du match ?",
            "Match à 19:00, heure de New York, stade 2.",
            "Le match est à 1:00, stade 2.",
        ),
        (
            "¿A qué hora es la reunión en Madrid?",
            "¿Hora de la reunión?",
            "Reunión a las 09:00 (hora de Bogotá), sala 4.",
            "La reunión es a las 16:00, sala 4.",
        ),
        (
            "When does the maintenance start?",
            "Maintenance window?",
            "Window: 22:00Z to 23:30Z on 4 May.",
            "It runs from 0:00 to 1:30 on 5 May.",
        ),
    ],
)
def test_a_time_in_another_zone_contradicts_nothing(
    user: str, prompt: str, result: str, answer: str
) -> None:
    assert told(user, prompt, result, answer) != "failed"


@pytest.mark.parametrize(
    ("user", "prompt", "result", "answer"),
    [
        (
            "When does it leave?",
            "Next ferry?",
            "Next ferry: 17:40 from pier 6, arrival 19:05.",
            "The next ferry leaves at 17:40 from pier 6, arrival 18:05.",
        ),
        (
            "Timeline of the outage in UTC.",
            "What happened, in UTC?",
            "07:12 UTC job starts, 07:42 UTC first error",
            "Job starts at 07:12 UTC, first error at 07:24 UTC.",
        ),
        (
            "Wann fährt er?",
            "Abfahrt nach Ulm?",
            "Abfahrt nach Ulm 16:42, Gleis 7.",
            "Abfahrt nach Ulm ist um 16:24, Gleis 7.",
        ),
        (
            "When was what?",
            "What happened?",
            LOG,
            "07:12 job starts\n07:40 first error\n08:50 queue full\n08:31 restart, all well",
        ),
        (
            "¿Cuándo sale?",
            "¿Salida del ferry?",
            "Ferry: salida 18:45, muelle 3.",
            "Ferry: salida 18:54, muelle 3.",
        ),
    ],
)
def test_another_time_in_the_same_zone_is_found(
    user: str, prompt: str, result: str, answer: str
) -> None:
    assert told(user, prompt, result, answer) == "failed"


QUOTE = "rooms = 57,460\nmeeting room = 14,000\nfjord cruise = 22,100\nsauna = 4,500\ntotal 98,060"


@pytest.mark.parametrize(
    ("user", "prompt", "result", "answer"),
    [
        (
            "What's the offsite in euros? Take 11.6 NOK for one.",
            "All positions in NOK.",
            QUOTE,
            "| | EUR |\n|---|---|\n| rooms | 4,953 |\n| meeting room | 1,207 |\n| fjord cruise | 1,905 |\n| sauna | 388 |",
        ),
        (
            "What's the offsite?",
            "All positions.",
            QUOTE,
            "- rooms: 5,020\n- meeting room: 1,223\n- fjord cruise: 1,931\n- sauna: 393",
        ),
        (
            "Was kostet das in Franken?",
            "Preise der Teile?",
            "Ventil 84, Dichtung 12,50 (alles EUR)",
            "Das Ventil kostet 79, die Dichtung 11,80 (CHF).",
        ),
        (
            "How heavy are they in pounds?",
            "Weights of the crates?",
            "| crate | kg |\n|---|---|\n| A | 48 |\n| B | 61 |",
            "| crate | lb |\n|---|---|\n| A | 105.8 |\n| B | 134.5 |",
        ),
        (
            "Revenue per region in k, please.",
            "Revenue per region?",
            "north 412,300\nsouth 288,900\nwest 97,450",
            "| | k |\n|---|---|\n| north | 412.3 |\n| south | 288.9 |\n| west | 97.5 |",
        ),
        (
            "Preise ohne Mehrwertsteuer bitte.",
            "Preise?",
            "Lampe 119,00; Kabel 23,80; Sockel 9,52",
            "Netto: Lampe 100,00; Kabel 20,00; Sockel 8,00.",
        ),
        (
            "What share does each have?",
            "Votes?",
            "Ana 132\nBen 88\nCleo 55\nDan 45",
            "Ana 41 %, Ben 28 %, Cleo 17 %, Dan 14 %.",
        ),
        (
            "Et par personne ? On est 8.",
            "Prix ?",
            "gîte 1 280 €, ménage 96 €, bois 48 €",
            "Par personne : gîte 160 €, ménage 12 €, bois 6 €.",
        ),
        (
            "How much is that in dollars?",
            "Price of the kiln?",
            "The kiln costs 1,840.",
            "The kiln costs 2,010 USD.",
        ),
        (
            "¿Cuánto es en euros?",
            "¿Precio del horno?",
            "El horno cuesta 31.900 pesos.",
            "El horno cuesta 1.640.",
        ),
        (
            "What does the kiln cost net?",
            "Price of the kiln?",
            "The kiln costs EUR 1,785 incl. VAT.",
            "The kiln costs EUR 1,500 net.",
        ),
    ],
)
def test_a_converted_amount_contradicts_nothing(
    user: str, prompt: str, result: str, answer: str
) -> None:
    assert told(user, prompt, result, answer) != "failed"


@pytest.mark.parametrize(
    ("user", "prompt", "result", "answer"),
    [
        (
            "What's the offsite?",
            "All positions.",
            QUOTE,
            "The fjord cruise is 21,200, the sauna 4,500.",
        ),
        (
            "What's the offsite?",
            "All positions.",
            QUOTE,
            "- rooms: 57,460\n- meeting room: 14,000\n- fjord cruise: 12,100\n- sauna: 4,500",
        ),
        ("Preis?", "Preis?", "Das Ventil kostet 84,50 EUR.", "Das Ventil kostet 48,50 EUR."),
        (
            "What does the kiln cost in euros?",
            "Price of the kiln in euros?",
            "The kiln costs 1,840 EUR.",
            "The kiln costs 1,480 EUR.",
        ),
        (
            "What does the kiln cost?",
            "Price of the kiln?",
            "The kiln costs 1,840 EUR.",
            "The kiln costs 18,400 EUR.",
        ),
        (
            "How heavy are they?",
            "Weights of the crates?",
            "Crate A: 48 kg, crate B: 61 kg.",
            "Crate A: 84 kg, crate B: 61 kg.",
        ),
        ("Combien ?", "Prix ?", "Le four coûte 1 840 €.", "Le four coûte 1 480 €."),
    ],
)
def test_another_amount_in_the_same_currency_is_found(
    user: str, prompt: str, result: str, answer: str
) -> None:
    assert told(user, prompt, result, answer) == "failed"


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "The fair runs from 12 to 15 October. A van for all of it, 3.5 t.",
            "The fair runs from 11 to 15 October. A van for all of it, 3.5 t.",
        ),
        (
            "We need 90 tiles for the bath, white matt, by 3 May.",
            "We need 80 tiles for the bath, white matt, by 3 May.",
        ),
        (
            "Invite the 14 people of the choir to the rehearsal on 4 May at 19:00.",
            "Invite the 12 people of the choir to the rehearsal on 4 May at 19:00.",
        ),
        (
            "Ein Taxi am 8. Mai um 10:45 von der Mühlgasse 4 zum Flughafen.",
            "Taxi zum Flughafen von der Mühlgasse 4 am 8. Mai um 10:54.",
        ),
        (
            "Have the garden of 24 m by 15 m drawn on A4, with the shed.",
            "Have the garden of 42 m by 15 m drawn on A4, with the shed.",
        ),
        (
            "Une chambre à Annecy du 3 au 6 mai pour 2, 120 euros maximum par nuit.",
            "Chambre à Annecy du 3 au 6 mai pour 2, 210 euros maximum par nuit.",
        ),
    ],
)
def test_a_value_that_does_not_follow_is_found(user: str, prompt: str) -> None:
    assert carried(user, prompt) == "failed"


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("Q1 1,204,310; Q2 988,420; Q3 1,310,075 (EUR)", "Q1 1,204,310, Q2 984,820, Q3 1,310,075."),
        ("| crate | kg |\n| A | 48.5 |\n| B | 61.2 |", "Crate A is 48.5 kg and B is 62.1 kg."),
        ("Villa Rosa: 140 a night, free 7-9 May.", "The Villa Rosa is 104 a night, free 7-9 May."),
        ("Heizung 1.480 kWh, Boiler 740 kWh", "Die Heizung braucht 1.840 kWh, der Boiler 740 kWh."),
        ("vuelos 1.472 EUR, hotel 1.104 EUR", "Los vuelos cuestan 1.742 EUR y el hotel 1.104 EUR."),
        (
            "Late 14 days after the due date. Fee 45 EUR.",
            "It's late after 14 days. The fee is 54 EUR.",
        ),
    ],
)
def test_an_amount_that_does_not_follow_is_found(result: str, answer: str) -> None:
    assert told("What is it?", "Find out.", result, answer) == "failed"


@pytest.mark.parametrize(
    ("user", "prompt", "result", "answer"),
    [
        (
            "Twin room in Porto, 16 to 20 April, up to GBP 110 a night.",
            "Porto, 16-20 April, 4 nights, max GBP 110 a night.",
            "1) Almada: €104/night, €416 (≈ £358). 2) Mouzinho: €121/night, €484 (≈ £416).",
            "I'd take Mouzinho, about £104 a night, £416 for four nights.",
        ),
        (
            "Compare what nurses earn in Germany and England, in euro.",
            "Pay of nurses in Germany and England.",
            "Germany €3,650 a month. England £36,483 a year, which is £3,040 a month.",
            "Germany pays €3,650. England pays £3,040 a month, around €3,560 at £1 = €1.17.",
        ),
        (
            "Convert the prices to pounds at 0.85.",
            "Prices?",
            "Basic 1,420 EUR, Pro 2,017 EUR, support 1,270 GBP.",
            "Basic is 1,420 EUR, i.e. 1,207 GBP at a rate of 0.85. Pro is 2,017 EUR.",
        ),
        (
            "Was kostet der Flug in Euro? Kurs 0,92.",
            "Flug nach Boston, Preis?",
            "LH 422: 512 USD. UA 31: 481 USD, Gepäck 417 EUR.",
            "LH 422 kostet 471,04 EUR (512 x 0,92), UA 31 zum Kurs 0,92 442,52 EUR.",
        ),
    ],
)
def test_an_amount_at_a_stated_rate_is_not_against_the_result(
    user: str, prompt: str, result: str, answer: str
) -> None:
    assert told(user, prompt, result, answer) != "failed"


@pytest.mark.parametrize(
    ("result", "answer", "reason"),
    [
        (
            "Almada: €104/night.",
            "I'd take Almada, £104 a night.",
            "`104 EUR`, the caller `104 GBP`",
        ),
        ("Germany €3,650, England £3,040.", "Germany pays €3,560 a month.", "`3,650`"),
    ],
)
def test_another_currency_or_swapped_digits_are_against_the_result(
    result: str, answer: str, reason: str
) -> None:
    trace = trip(result, said(answer), user="What do I pay or get?", prompt="Find the amounts.")
    found = verdict("result_contradicted", trace)
    assert found.status == "failed"
    assert reason in found.reason


TESTED = ("p95 210 ms.", "Set the pool to 16 and batches to 280: p95 is 210 ms.")


@pytest.mark.parametrize(
    ("first", "prompt"),
    [
        (
            "Pool size 14, batch of 250, poll every 30 s.",
            "Test with a pool size of 16, batches of 280.",
        ),
        (
            "Fastify's own default is 72 s.",
            "Test pool 16, batch 280, headersTimeout 66 s in server.ts.",
        ),
    ],
)
def test_a_caller_may_choose_other_settings_in_a_later_prompt(first: str, prompt: str) -> None:
    result, answer = TESTED
    trace = build.trace(
        build.run(
            "main",
            build.delegate("reader", "Current settings?", result=first),
            build.delegate("tester", prompt, result=result),
            answer,
        ),
        build.run("reader", first),
        build.run("tester", result),
        "Make the queue faster.",
    )
    assert "failed" not in {each.status for each in verdicts("result_contradicted", trace)}


def test_another_value_in_a_later_prompt_is_not_passed_either() -> None:
    result, answer = "Booked.", "I've booked coach 17."
    trace = build.trace(
        build.run(
            "main",
            build.delegate("finder", "Which coach?", result="There are seats in coach 7."),
            build.delegate("booker", "Book two seats in coach 17.", result=result),
            answer,
        ),
        build.run("finder", "There are seats in coach 7."),
        build.run("booker", result),
        "Book two seats on the train to Ulm.",
    )
    first = verdicts("result_contradicted", trace)[0]
    assert first.status == "skipped"
    assert "can't tell whether it chose another value for the next agent" in first.reason


def test_a_later_prompt_with_swapped_digits_is_against_the_result() -> None:
    trace = build.trace(
        build.run(
            "main",
            build.delegate("prices", "Cost of order 88?", result="It costs 4,310.75 EUR."),
            build.delegate("writer", "Write that it costs 4,130.75 EUR.", result="Written."),
            "I've written the mail.",
        ),
        build.run("prices", "It costs 4,310.75 EUR."),
        build.run("writer", "Written."),
        "What does order 88 cost? Write the customer.",
    )
    statuses = [each.status for each in verdicts("result_contradicted", trace)]
    assert statuses[0] == "failed"


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Siempre pago 52,90 € y en octubre me habéis clavado 94,80 €. Cliente 40718823. En 2019 me "
            "devolvisteis 30 euros.",
            "Cliente 40718823. Octubre: 94,80 € frente a 52,90 € habituales, reclama 41,90 €.",
        ),
        (
            "Rechnung 7781: 3 Monitore zu 240 EUR, berechnet wurden 960 EUR. Früher gab es 15 EUR Rabatt.",
            "Rechnung 7781: 3 Monitore zu 240 EUR, also 720 EUR, berechnet wurden 960 EUR.",
        ),
        (
            "Order.window_start is minutes since midnight. Consumers: 5 services in this monorepo (orders, "
            "dispatch, driver-api, billing, notifier). Tell me which consumers read it.",
            "Who reads Order.window_start (minutes since midnight)? Services orders, dispatch, driver-api, "
            "billing, notifier. file:line.",
        ),
        (
            "Prüfe die 4 Standorte: Kiel, Ulm, Mainz und Gera, auf freie Parkplätze am 3. Mai.",
            "Freie Parkplätze am 3. Mai in Kiel, Ulm, Mainz, Gera.",
        ),
    ],
)
def test_a_difference_and_a_counted_list_carry_their_values(user: str, prompt: str) -> None:
    assert carried(user, prompt) != "failed"


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Cliente 40718823: pago 52,90 € y me cobraron 94,80 € en octubre. Abonad 30 euros.",
            "Cliente 40718823: paga 52,90 €, le cobraron 94,80 € en octubre. Abonar 13 €.",
        ),
        (
            "Order 5 boxes of gloves (size S, M and L) for ward 12.",
            "Order boxes of gloves (size S, M and L) for ward 12.",
        ),
    ],
)
def test_another_amount_and_a_count_of_something_else_are_lost(user: str, prompt: str) -> None:
    assert carried(user, prompt) == "failed"


@pytest.mark.parametrize(
    ("user", "prompt", "result", "answer"),
    [
        (
            "We want out of the shop lease by the end of the year.",
            "CPI, latest monthly value.",
            "April 2025: 121.7 (published 14 May 2025). March 2025: 121.2.",
            "To be out on 31 December 2025, the letter has to be there in June. The index stands at 121.7.",
        ),
        (
            "Plan the migration of the orders DB between 03:00 and 05:00.",
            "Rehearsal: durations of the steps.",
            "stop 0:30, drain 1:40, sequences 0:50, smoke tests 6:00 -> 9:00 (mm:ss)",
            "The downtime is about 9 minutes. No-go: not through smoke tests by 03:52.",
        ),
        (
            "The grant is 11,680 euros in the end. What does it cost per flat?",
            "Get the offer for insulating the roof.",
            "Offer: 58,400 euros. Grant 15 percent, i.e. 6,205 per flat with eight flats.",
            "5,840 per flat, because your plan earns you a higher subsidy.",
        ),
        (
            "When did we have to issue the invoice?",
            "Terms of the invoice?",
            "Due 2025-07-15, 30 days net",
            "You had to issue it on 15 June 2025.",
        ),
        (
            "Until when do I have to pay?",
            "Terms of the invoice?",
            "Issued 20 December 2025, 30 days net",
            "Pay by 19 January 2026.",
        ),
        (
            "Until when do I have to pay?",
            "Terms of the invoice?",
            "Issued 10 February 2028, 30 days net",
            "Pay by 11 March 2028.",
        ),
        (
            "When do we start the concert?",
            "Doors of the hall?",
            "Doors open at 18:30, soundcheck 16:00 to 17:30.",
            "Doors open at 18:30. Tell the band to finish the soundcheck by 17:15.",
        ),
        (
            "Reicht der Bestand für vier Wochen?",
            "Dialysatoren: Bestand, Kartongröße, Verbrauch.",
            "Bestand 520 Stück, Verbrauch 241/Woche. Karton 24 Stück zu 285,60 €.",
            "520 Stück reichen gut zwei Wochen. Vier Wochen sind 964 Stück, also 41 Kartons für 11.709,60 €.",
        ),
        (
            "How many vans do we need for 310 parcels?",
            "Capacity of a van?",
            "A van holds 48 parcels; 12 vans are in the yard.",
            "For 310 parcels you need 7 vans.",
        ),
        (
            "Which loft do we take?",
            "Sizes and rents.",
            "Loft A: 64 m², 1,480 a month. Loft B: 72 m², 1,590 a month.",
            "B: 8 m² more for 110 a month. Over a year that's 1,320, or 13.75 per extra m² and month. Per m² A costs 23.13 and B 22.08.",
        ),
    ],
)
def test_plans_deadlines_and_counts_of_other_things_are_not_against_the_result(
    user: str, prompt: str, result: str, answer: str
) -> None:
    assert told(user, prompt, result, answer) != "failed"


@pytest.mark.parametrize(
    ("user", "prompt", "result", "answer"),
    [
        (
            "When does the match start?",
            "Kick-off?",
            "Kick-off is at 20:45 on 14 May.",
            "Kick-off is at 21:45 on 14 May.",
        ),
        (
            "The grant is 11,680 euros in the end. What does it cost per flat?",
            "Get the offer for insulating the roof.",
            "Offer: 58,400 euros. Grant 15 percent, i.e. 6,205 per flat with eight flats.",
            "6,025 per flat, because your plan earns you a higher subsidy.",
        ),
        (
            "When did we have to issue the invoice?",
            "Terms of the invoice?",
            "Due 15 July 2025, 45 days net",
            "It is due on 15 June 2025.",
        ),
        (
            "How many seats?",
            "Seats in the hall?",
            "The hall has 186 seats.",
            "The hall has 168 seats.",
        ),
        (
            "How many boxes are left?",
            "Stock of boxes?",
            "There are 14 boxes left.",
            "There are 41 boxes left.",
        ),
        (
            "When was it published?",
            "Latest CPI?",
            "April: 121.7 (published 14 May 2025).",
            "The figure for April is 121.7, published on 24 May 2025.",
        ),
        (
            "What's the deposit?",
            "Deposit?",
            "The deposit is 480 EUR, due by 3 May.",
            "The deposit is 840 EUR, due by 3 May.",
        ),
    ],
)
def test_another_value_of_the_same_thing_is_against_the_result(
    user: str, prompt: str, result: str, answer: str
) -> None:
    assert told(user, prompt, result, answer) == "failed"


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Mam 182 tony pszenicy, wilgotność ok. 14,6 %. Skup w Kutnie bierze do 15 % wilgotności, młyn tylko do 14 %.",
            "182 t pszenicy z 14,6 % do 13,9 %: koszt suszenia.",
        ),
        (
            "182 t of wheat at 14.6 % moisture. The mill takes up to 14 %, the depot up to 15 %. What pays more?",
            "Cost of drying 182 t from 14.6 % to 13.9 %?",
        ),
        (
            "Our fleet scales between 9 and 17 instances, on average 12.1. In 2023 we over-committed and burnt 11k. What should we commit?",
            "Fleet, last 90 days: minimum, mean, maximum. How many instance-hours lie above 9 and above 11?",
        ),
        (
            "We sold 4k tickets last year. This time the hall has rows 1 to 40. Which rows sold best?",
            "Which rows of 1 to 40 sold best? How many lie above 4 per day?",
        ),
    ],
)
def test_limits_that_a_target_keeps_and_old_amounts_are_not_lost(user: str, prompt: str) -> None:
    assert carried(user, prompt) != "failed"


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Send 74 kg of flour to Bergen.",
            "Send 74 lb of flour to Bergen.",
        ),
        (
            "Transfer 11k EUR to the landlord today.",
            "Transfer 11 EUR to the landlord today.",
        ),
        (
            "Cut the moisture of lot 7 to 14 %.",
            "Cut the moisture of lot 7 to 41 %.",
        ),
    ],
)
def test_another_unit_size_or_order_of_digits_is_a_loss(user: str, prompt: str) -> None:
    assert carried(user, prompt) == "failed"


@pytest.mark.parametrize(
    ("result", "answer", "status"),
    [
        (
            "Doctor Hale is free Tuesday 9:30",
            "Doctor Hale can see you Thursday at 9:30.",
            "skipped",
        ),
        ("Doctor Hale is free Tuesday 9:30", "Doctor Hale can see you Tues at 9:30.", "passed"),
        ("Dr. Hale hat am Dienstag um 9:30 frei", "Dr. Hale: Mittwoch, 9:30 Uhr.", "skipped"),
        ("Free: Tuesday 9:30, Friday 14:00", "Friday 14:00 suits your shift.", "passed"),
        (
            "The order of 4 May arrives on Friday",
            "It arrives on Friday; call us on Monday.",
            "passed",
        ),
    ],
)
def test_another_weekday_is_not_passed(result: str, answer: str, status: str) -> None:
    assert told("When can I see her?", "Slots?", result, answer) == status
