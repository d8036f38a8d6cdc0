"""Secrets in addresses and settings: known by their names, and never shown or written down."""

import re
from dataclasses import fields

import pytest

from penstock.config import Settings
from penstock.control.history.store import HistoryStore
from penstock.errors import InvalidInput, InvalidTopology, Unavailable
from penstock.masking import SPARK_REDACTION, carries_secret, is_secret_name, masked_url
from penstock.model.sinks import Files, ToChannel
from penstock.model.sources import Streams
from penstock.spark.sources.backends.kafka_clients import KafkaPlace
from penstock.spark.sources.backends.redis_connection import RedisPlace

SHOWN = {
    "redis://host:6379/0": "redis://host:6379/0",
    "redis://user:hunter2@host/0": "redis://***@host/0",
    "redis://host/0?password=hunter2&db=1": "redis://host/0?password=***&db=1",
    "redis://host/0?p%61ssword=hunter2": "redis://host/0?p%61ssword=***",
    "redis://host/0;x?db=1&sslpassword=hunter2#f": "redis://host/0;x?db=1&sslpassword=***",
    "postgresql://u:hun/ter2@host/name": "postgresql://***@host/name",
    "postgresql://u:hun@ter2/x@host/name": "postgresql://***@host/name",
    "postgresql://u:hunter?2@host/name?application_name=x": (
        "postgresql://***@host/name?application_name=x"
    ),
    "redis//:hunter2@host": "redis//***@host",
    "redis:hunter2@host": "***@host",
    "mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BPWD%3Dhunter2": (
        "mssql+pyodbc:///?odbc_connect=***"
    ),
    "runs/of@home.sqlite": "runs/of@home.sqlite",
    "abfs://c@a.dfs.core.windows.net/x?account_key=hunter2": (
        "abfs://***@a.dfs.core.windows.net/x?account_key=***"
    ),
    "wasbs://h/x;AccountKey=hunter2?a=1": "wasbs://h/x;AccountKey=***",
    "redis://h/0#password=hunter2": "redis://h/0#password=***",
}


@pytest.mark.parametrize("url", SHOWN)
def test_an_address_is_shown_without_its_secrets(url: str) -> None:
    assert masked_url(url) == SHOWN[url]


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("redis://host/0", False),
        ("redis://user@host/0?db=1", False),
        ("redis://:x@host/0", True),
        ("redis://user:a/b@host/0", True),
        ("redis://host/0?password=x", True),
        ("redis://host/0?db=1&PassWord=x", True),
        ("s3://b/x#secret_key=x", True),
        ("wasbs://h/x;AccountKey=x", True),
        ("s3://b/x?region=eu&endpoint_override=h:1&scheme=http#part", False),
        ("redis://host/0?password", False),
    ],
)
def test_an_address_that_carries_a_secret_is_known(url: str, secret: bool) -> None:
    assert carries_secret(url) is secret


@pytest.mark.parametrize(
    "name",
    [
        "account_key", "AccountKey", "accountkey", "storage_key", "SharedAccessKey", "shared-key",
        "access_key", "secret_key", "session_token", "sas_token", "sas", "sig", "X-Amz-Signature",
        "X-Amz-Credential", "X-Amz-Security-Token", "SharedAccessSignature", "auth_key", "jwt",
        "signing_key", "encryption-key", "master_key", "connection_string", "ConnectionString",
        "pass", "db_pass", "passcode",
    ],
)  # fmt: skip
def test_secrets_of_object_stores_are_known(name: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Files(f"s3://bucket/out?{name}=hunter2")
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "name",
    [
        "region", "scheme", "endpoint_override", "account", "account_name", "AWSAccessKeyId",
        "allow_bucket_creation", "connect_timeout", "partition_key", "routing_key", "key", "keys",
        "key_groups", "atlas", "compass", "bypass", "design", "kms_key_id", "passive",
        "tokens_per_s", "signal", "signature_version", "keystore", "sasl.mechanism",
        "path_style_access",
    ],
)  # fmt: skip
def test_ordinary_parameters_are_no_secrets(name: str) -> None:
    assert Files(f"s3://bucket/out?{name}=x").path.endswith(f"?{name}=x")


def test_no_option_of_ours_is_taken_for_a_secret() -> None:
    assert not [one.name for one in fields(Settings) if is_secret_name(one.name)]


@pytest.mark.parametrize(
    ("setting", "hidden"),
    [
        ("spark.hadoop.fs.azure.account.key.acct.dfs.core.windows.net", True),
        ("spark.hadoop.fs.azure.sas.c.acct.blob.core.windows.net", True),
        ("spark.hadoop.fs.s3a.secret.key", True),
        ("spark.hadoop.fs.azure.account.auth.type", False),
        ("spark.sql.shuffle.partitions", False),
        ("spark.executor.memory", False),
    ],
)
def test_what_spark_hides_of_its_settings(setting: str, hidden: bool) -> None:
    assert bool(re.search(SPARK_REDACTION, setting)) is hidden


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem",
        "sasl.oauthbearer.config", "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.assertion.private.key.pem", "SASL.JAAS.CONFIG",
        "sasl.oauthbearer.assertion.private.key.passphrase", "auth_token", "api-key",
    ],
)  # fmt: skip
def test_secrets_are_known_by_their_names(name: str) -> None:
    assert is_secret_name(name)
    with pytest.raises(InvalidInput, match="client_env") as refusal:
        KafkaPlace.from_options({"servers": "host:9092", "client": {name: "hunter2"}})
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "name",
    [
        "ssl.ca.pem", "ssl.certificate.pem", "ssl.key.location", "sasl.username", "client.id",
        "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.id", "group.id",
    ],
)  # fmt: skip
def test_what_is_public_may_be_written_down(name: str) -> None:
    assert not is_secret_name(name)
    assert KafkaPlace.from_options({"servers": "host:9092", "client": {name: "x"}}).client


@pytest.mark.parametrize(
    "url", ["redis://host/0?password=hunter2", "redis://u:hun/hunter2@host/0", "x://:hunter2@h"]
)
def test_redis_refuses_a_secret_without_showing_it(url: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        RedisPlace.from_options({"url": url})
    assert "hunter2" not in str(refusal.value)
    assert "hunter2" not in Streams(redis=url, schema="x INT").identity


@pytest.mark.parametrize(
    "servers", ["SASL_SSL://u:hunter2@host", {"password": "hunter2"}], ids=["text", "table"]
)
def test_kafka_refuses_a_table_or_address_without_showing_a_secret(servers: object) -> None:
    with pytest.raises(InvalidInput) as refusal:
        KafkaPlace.from_options({"servers": "h:1", "client": [servers]})
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "servers",
    [
        "SASL_SSL://u:hunter2@host:9092",
        "first:9092,SASL_SSL://u:hunter2@host:9092",
        "first:9092,u:hunter2@host:9092",
        "SASL_SSL://u:a,hunter2@host:9092",
        "host:9092?password=hunter2,second:9092",
    ],
)
def test_kafka_refuses_a_server_that_carries_a_secret(servers: str) -> None:
    with pytest.raises(InvalidInput, match="client_env") as refusal:
        KafkaPlace.from_options({"servers": servers})
    assert "hunter2" not in str(refusal.value)
    assert "hunter2" not in Streams(kafka=servers, topics=["t"], schema="x INT").identity


@pytest.mark.parametrize("name", ["bootstrap.servers", "sasl.oauthbearer.token.endpoint.url"])
def test_kafka_refuses_a_client_setting_whose_address_carries_a_secret(name: str) -> None:
    client = {name: "first:9092,https://u:hunter2@host:9092"}
    with pytest.raises(InvalidInput, match="client_env") as refusal:
        KafkaPlace.from_options({"servers": "host:9092", "client": client})
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "url",
    [
        "s3://KEY:hunter2@bucket/out",
        "s3://KEY:hun/hunter2@bucket/out",
        "s3://bucket/out?secret_key=hunter2",
        "abfs://account/box/out?sv=1&sig=hunter2",
    ],
)
@pytest.mark.parametrize("sink", [Files, ToChannel])
def test_a_sink_refuses_an_address_that_carries_a_secret(
    sink: type[Files] | type[ToChannel], url: str
) -> None:
    with pytest.raises(InvalidTopology, match="environment") as refusal:
        sink(url)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "path",
    ["out", "runs/a:b@c", "file:///data/a:b@c", "s3://bucket/out?region=x", "hdfs://u@host/out"],
)
def test_a_sink_takes_an_address_without_a_secret(path: str) -> None:
    assert Files(path).path == path


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://127.0.0.1:1/x?password=hunter2",
        "postgresql+psycopg://u:a/hunter2@127.0.0.1:1/x",
        "nosuch://u:a/hunter2@127.0.0.1:1/x",
        "nosuch://127.0.0.1:1/x?password=hunter2",
        "postgresql+psycopg://u:a@hunter2/b@127.0.0.1:1/x",
    ],
)
def test_a_history_never_shows_a_secret(url: str) -> None:
    with pytest.raises((Unavailable, InvalidInput)) as refusal:
        HistoryStore(url, create=False)
    assert "hunter2" not in str(refusal.value)
