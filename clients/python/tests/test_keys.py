import hashlib
import hmac

import pytest

from redis_slide import api_key, client_ip, ip_key, tagged

PROXIES = ["10.0.0.0/8", "2001:db8:ffff::/48"]


def test_an_api_key_is_not_stored_as_it_is():
    assert api_key("s3cret") == "key:" + hashlib.sha256(b"s3cret").hexdigest()[:32]


@pytest.mark.parametrize(
    ("address", "counted_as"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:4711", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:0DB8:1:2::", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2::9]:4711", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_an_address_is_hashed_with_the_secret(address, counted_as):
    expected = hmac.new(b"secret", counted_as.encode(), hashlib.sha256).hexdigest()[:32]
    assert ip_key(address, "secret") == ip_key(address, b"secret") == f"ip:{expected}"
    assert ip_key(address, "another") != f"ip:{expected}"


@pytest.mark.parametrize("secret", ["", b""])
def test_there_is_no_default_secret(secret):
    with pytest.raises(ValueError, match="secret must not be empty"):
        ip_key("192.0.2.1", secret)
    with pytest.raises(TypeError):
        ip_key("192.0.2.1")


@pytest.mark.parametrize("address", ["", "localhost", "192.0.2.256", "1.2.3"])
def test_what_is_no_address_has_no_key(address):
    with pytest.raises(ValueError, match="address must be"):
        ip_key(address, "secret")


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),  # not our proxy: it may say what it likes
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "6.6.6.6, 198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("10.0.0.1", ["6.6.6.6", "198.51.100.1,10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", "10.0.0.3", "10.0.0.3"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", "6.6.6.6, unknown, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
        ("2001:db8:ffff::1", "[2001:db8::7]:4711", "2001:db8::7"),
        ("", "198.51.100.1", ""),
        (None, "198.51.100.1", ""),
    ],
)
def test_the_client_is_the_nearest_that_is_no_proxy_of_ours(peer, forwarded, client):
    assert client_ip(peer, forwarded, PROXIES) == client


@pytest.mark.parametrize("peer", ["", None])
def test_a_proxy_on_a_unix_socket(peer):
    assert client_ip(peer, "6.6.6.6, 198.51.100.1", ["unix"]) == "198.51.100.1"
    assert client_ip("203.0.113.9", "198.51.100.1", ["unix"]) == "203.0.113.9"


def test_a_wrong_network_is_an_error():
    with pytest.raises(ValueError, match="10"):
        client_ip("10.0.0.1", "", ["10.0.0.1/8"])


def test_a_hash_tag():
    assert tagged("{user:9}", "calls") == "{user:9}:calls"
    for wrong in ("user:9", "{}", "{a}b", "{a}}", ""):
        with pytest.raises(ValueError, match="braces"):
            tagged(wrong, "calls")
