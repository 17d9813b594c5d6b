"""Real S3 clients, each through the same handful of steps: put, multipart, ranges, one-key pages, copies, odd keys."""

import os
import subprocess
import sys

from duckdb_catalog import extension
from steps import close, run, same
from tidewater import Server

MIB = 1 << 20
BUCKET = "clients"
# Double slashes, a parent that is none, blanks, signs that URLs and forms give a meaning, letters of two and four bytes.
ODD_KEYS = ["a//b", "a/../b", "a b/c d", "plus+and%25", "q?x=1&y=2#z", "ü/日本/😀", "semi;colon'quote\"", "trailing/"]


def pattern(size, seed=1):
    block = bytes((n * 31 + seed) % 251 for n in range(251 * 4))
    return (block * (size // len(block) + 1))[:size]


def boto(server):
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3",
        endpoint_url=server.s3_url,
        region_name="us-east-1",
        aws_access_key_id=server.root_key[0],
        aws_secret_access_key=server.root_key[1],
        # Presigned URLs are else signed as version 2, which is refused.
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )


def boto3_steps(server):
    from boto3.s3.transfer import TransferConfig
    from botocore.exceptions import ClientError

    s3, folder = boto(server), "boto3/"

    def put_get_and_head():
        s3.put_object(Bucket=BUCKET, Key=folder + "small", Body=b"hello", ContentType="text/x", Metadata={"a": "1"})
        got = s3.get_object(Bucket=BUCKET, Key=folder + "small", ChecksumMode="ENABLED")
        same((got["Body"].read(), got["ContentType"], got["Metadata"]), (b"hello", "text/x", {"a": "1"}))
        same(s3.head_object(Bucket=BUCKET, Key=folder + "small")["ContentLength"], 5)

    def multipart_and_its_parts():
        path = server.folder / "large"
        path.write_bytes(pattern(13 * MIB))
        s3.upload_file(str(path), BUCKET, folder + "large", Config=TransferConfig(5 * MIB, multipart_chunksize=5 * MIB))
        part = s3.get_object(Bucket=BUCKET, Key=folder + "large", PartNumber=3)
        same((part["PartsCount"], part["ContentLength"]), (3, 3 * MIB))
        same(part["Body"].read(), pattern(13 * MIB)[10 * MIB :])
        s3.download_file(BUCKET, folder + "large", str(path) + ".back")
        same((server.folder / "large.back").read_bytes() == pattern(13 * MIB), True)

    def ranges():
        read = lambda asked: s3.get_object(Bucket=BUCKET, Key=folder + "small", Range=asked)["Body"].read()
        same((read("bytes=1-3"), read("bytes=-2"), read("bytes=3-")), (b"ell", b"lo", b"lo"))

    def one_key_pages():
        for number in range(5):
            s3.put_object(Bucket=BUCKET, Key=f"{folder}page/{number}", Body=b"x")
        for name in ("list_objects", "list_objects_v2"):
            pages = s3.get_paginator(name).paginate(Bucket=BUCKET, Prefix=folder + "page/", PaginationConfig={"PageSize": 1})
            same([entry["Key"][-1] for page in pages for entry in page.get("Contents", [])], list("01234"))

    def copy_with_new_metadata():
        source = {"Bucket": BUCKET, "Key": folder + "small"}
        s3.copy_object(Bucket=BUCKET, Key=folder + "copy", CopySource=source, MetadataDirective="REPLACE", Metadata={"b": "2"})
        same(s3.head_object(Bucket=BUCKET, Key=folder + "copy")["Metadata"], {"b": "2"})

    def odd_keys():
        for key in ODD_KEYS:
            s3.put_object(Bucket=BUCKET, Key=folder + "odd/" + key, Body=key.encode())
            same(s3.get_object(Bucket=BUCKET, Key=folder + "odd/" + key)["Body"].read(), key.encode())
        listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=folder + "odd/")["Contents"]
        same([entry["Key"].removeprefix(folder + "odd/") for entry in listed], sorted(ODD_KEYS, key=str.encode))

    def only_one_creates():
        s3.put_object(Bucket=BUCKET, Key=folder + "once", Body=b"1", IfNoneMatch="*")
        try:
            s3.put_object(Bucket=BUCKET, Key=folder + "once", Body=b"2", IfNoneMatch="*")
        except ClientError as error:
            same(error.response["Error"]["Code"], "PreconditionFailed")
        else:
            raise AssertionError("created twice")

    def presigned_urls_and_forms():
        import requests

        link = s3.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": folder + "small"}, ExpiresIn=60)
        same(requests.get(link).content, b"hello")
        form = s3.generate_presigned_post(BUCKET, folder + "form", Conditions=[["content-length-range", 1, 10]])
        same(requests.post(form["url"], data=form["fields"], files={"file": b"posted"}).status_code, 204)
        same(s3.get_object(Bucket=BUCKET, Key=folder + "form")["Body"].read(), b"posted")
        same(requests.post(form["url"], data=form["fields"], files={"file": b"posted too much"}).status_code, 400)

    def a_session_reads_what_its_policy_says():
        import boto3

        key, secret = server.root_key
        keys = {"aws_access_key_id": key, "aws_secret_access_key": secret}
        sts = boto3.client("sts", endpoint_url=server.s3_url, region_name="us-east-1", **keys)
        policy = f'{{"Statement":[{{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::{BUCKET}/boto3/*"}}]}}'
        role = "arn:aws:iam::123456789012:role/any"
        made = sts.assume_role(RoleArn=role, RoleSessionName="tester", Policy=policy, DurationSeconds=900)["Credentials"]
        keys = {"aws_access_key_id": made["AccessKeyId"], "aws_secret_access_key": made["SecretAccessKey"]}
        session = boto3.client(
            "s3", endpoint_url=server.s3_url, region_name="us-east-1", aws_session_token=made["SessionToken"], **keys
        )
        same(session.get_object(Bucket=BUCKET, Key=folder + "small")["Body"].read(), b"hello")
        try:
            session.delete_object(Bucket=BUCKET, Key=folder + "small")
        except ClientError as error:
            same(error.response["Error"]["Code"], "AccessDenied")
        else:
            raise AssertionError("deleted against the session's policy")

    def delete_many():
        keys = [entry["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=folder) for entry in page["Contents"]]
        done = s3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": key} for key in keys]})
        same((len(done["Deleted"]), done.get("Errors")), (len(keys), None))
        same(s3.list_objects_v2(Bucket=BUCKET, Prefix=folder)["KeyCount"], 0)

    return [
        ("put, get and head", put_get_and_head),
        ("multipart, read part by part", multipart_and_its_parts),
        ("ranges", ranges),
        ("one-key pages, both listings", one_key_pages),
        ("copy with new metadata", copy_with_new_metadata),
        ("odd keys", odd_keys),
        ("only one creates", only_one_creates),
        ("presigned URLs and forms", presigned_urls_and_forms),
        ("a session reads what its policy says", a_session_reads_what_its_policy_says),
        ("delete many", delete_many),
    ]


def pyarrow_steps(server):
    from pyarrow import fs

    key, secret = server.root_key
    s3 = fs.S3FileSystem(
        access_key=key,
        secret_key=secret,
        endpoint_override=server.s3_url.removeprefix("http://"),
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=False,
    )
    folder = BUCKET + "/pyarrow"

    def write(path, content):
        with s3.open_output_stream(path) as stream:
            stream.write(content)

    def read(path):
        with s3.open_input_stream(path) as stream:
            return stream.read()

    def put_and_get():
        write(folder + "/small", b"hello")
        same(read(folder + "/small"), b"hello")

    def multipart_and_positioned_reads():
        write(folder + "/large", pattern(23 * MIB))
        with s3.open_input_file(folder + "/large") as file:
            same(file.size(), 23 * MIB)
            same(file.read_at(1000, 11 * MIB - 500), pattern(23 * MIB)[11 * MIB - 500 :][:1000])

    def odd_keys():
        # This client takes keys for paths: without double slashes, parents and a slash at the end.
        names = [name for name in ODD_KEYS if not ("//" in name or ".." in name or name.endswith("/"))]
        for name in names:
            write(f"{folder}/odd/{name}", name.encode())
            same(read(f"{folder}/odd/{name}"), name.encode())
        found = s3.get_file_info(fs.FileSelector(folder + "/odd", recursive=True))
        same(sorted(info.path for info in found if info.is_file), sorted(f"{folder}/odd/{name}" for name in names))

    def copy_move_and_delete():
        s3.copy_file(folder + "/small", folder + "/copy")
        s3.move(folder + "/copy", folder + "/moved")
        same(read(folder + "/moved"), b"hello")
        s3.delete_dir(folder)
        same(s3.get_file_info(folder + "/moved").type, fs.FileType.NotFound)

    return [
        ("put and get", put_and_get),
        ("multipart and positioned reads", multipart_and_positioned_reads),
        ("odd keys", odd_keys),
        ("copy, move and delete", copy_move_and_delete),
    ]


def s3fs_steps(server):
    import s3fs

    key, secret = server.root_key
    s3 = s3fs.S3FileSystem(
        key=key, secret=secret, endpoint_url=server.s3_url, client_kwargs={"region_name": "us-east-1"}, use_listings_cache=False
    )
    folder = BUCKET + "/s3fs"

    def put_and_get():
        s3.pipe(folder + "/small", b"hello")
        same((s3.cat(folder + "/small"), s3.cat_file(folder + "/small", start=1, end=3)), (b"hello", b"el"))

    def multipart():
        with s3.open(folder + "/large", "wb", block_size=5 * MIB) as file:
            file.write(pattern(12 * MIB))
        same(s3.size(folder + "/large"), 12 * MIB)
        with s3.open(folder + "/large", "rb") as file:
            file.seek(7 * MIB)
            same(file.read(100), pattern(12 * MIB)[7 * MIB :][:100])

    def odd_keys():
        names = [name for name in ODD_KEYS if not name.endswith("/") and "?" not in name]
        for name in names:
            s3.pipe(f"{folder}/odd/{name}", name.encode())
            same(s3.cat(f"{folder}/odd/{name}"), name.encode())
        same(sorted(s3.find(folder + "/odd")), sorted(f"{folder}/odd/{name}" for name in names))

    def copy_and_delete():
        s3.copy(folder + "/large", folder + "/copy")
        same(s3.checksum(folder + "/copy") is not None, True)
        s3.rm(folder, recursive=True)
        same(s3.exists(folder), False)

    return [("put and get", put_and_get), ("multipart", multipart), ("odd keys", odd_keys), ("copy and delete", copy_and_delete)]


def duckdb_steps(server):
    import duckdb

    key, secret = server.root_key
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute(f"load '{extension('httpfs')}'")
    connection.execute(
        f"""create secret (type s3, key_id '{key}', secret '{secret}', region 'us-east-1', use_ssl false, url_style 'path',
            endpoint '{server.s3_url.removeprefix("http://")}')"""
    )
    folder = f"s3://{BUCKET}/duckdb"

    def write_and_read():
        connection.execute(f"copy (select range as n from range(100000)) to '{folder}/n.csv'")
        same(connection.execute(f"select count(*), sum(n) from read_csv('{folder}/n.csv')").fetchone(), (100000, 4999950000))

    def glob_over_odd_names():
        for name in ["a b", "ü", "plus+"]:
            connection.execute(f"copy (select 1 as n) to '{folder}/odd/{name}.csv'")
        same(connection.execute(f"select sum(n) from read_csv('{folder}/odd/*.csv')").fetchone(), (3,))

    return [("write and read", write_and_read), ("glob over odd names", glob_over_odd_names)]


def files_for(server, name):
    """A folder of files for a client that is a command, and the name of one for what comes back."""
    local = server.folder / name
    local.mkdir()
    (local / "small").write_bytes(b"hello")
    (local / "large").write_bytes(pattern(17 * MIB))
    (local / "ü b+c").write_bytes(b"odd")
    return local, server.folder / (name + "-back")


def same_files(local, back):
    for path in local.iterdir():
        same((back / path.name).read_bytes() == path.read_bytes(), True)


def awscli_steps(server):
    key, secret = server.root_key
    environment = {
        **{n: v for n, v in os.environ.items() if not n.startswith("AWS_")},
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": "/dev/null",
    }

    def aws(*arguments):
        command = [os.environ["AWS_CLI"], "--endpoint-url", server.s3_url, *arguments]
        return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout

    folder = f"s3://{BUCKET}/awscli"
    local, back = files_for(server, "awscli")

    def sync_there_and_back():
        aws("s3", "sync", str(local), folder + "/")
        aws("s3", "sync", folder + "/", str(back))
        same_files(local, back)

    def list_in_pages():
        printed = aws("s3api", "list-objects-v2", "--bucket", BUCKET, "--prefix", "awscli/", "--page-size", "1", "--query", "length(Contents)")
        same(printed.strip(), "3")

    def copy_move_and_remove():
        aws("s3", "cp", folder + "/large", folder + "/copy")
        aws("s3", "mv", folder + "/copy", folder + "/moved")
        same(aws("s3", "ls", folder + "/moved").split()[2], str(17 * MIB))
        aws("s3", "rm", "--recursive", folder)
        same(aws("s3", "ls", f"s3://{BUCKET}/"), "")

    def buckets():
        aws("s3", "mb", "s3://made-by-aws")
        same("made-by-aws" in aws("s3", "ls"), True)
        aws("s3", "rb", "s3://made-by-aws")

    return [
        ("sync there and back, a large file among them", sync_there_and_back),
        ("list in pages", list_in_pages),
        ("copy, move and remove", copy_move_and_remove),
        ("make and remove a bucket", buckets),
    ]


def rclone_steps(server):
    key, secret = server.root_key
    environment = {
        # It has no use for the machine's certificates here, and refuses to start with them.
        **{n: v for n, v in os.environ.items() if not n.startswith(("RCLONE_", "AWS_"))},
        "RCLONE_CONFIG": "/dev/null",
        "RCLONE_CONFIG_LAKE_TYPE": "s3",
        "RCLONE_CONFIG_LAKE_PROVIDER": "Other",
        "RCLONE_CONFIG_LAKE_ENDPOINT": server.s3_url,
        "RCLONE_CONFIG_LAKE_REGION": "us-east-1",
        "RCLONE_CONFIG_LAKE_ACCESS_KEY_ID": key,
        "RCLONE_CONFIG_LAKE_SECRET_ACCESS_KEY": secret,
    }

    def rclone(*arguments):
        return subprocess.run(["rclone", *arguments], env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout

    folder = f"lake:{BUCKET}/rclone"
    local, back = files_for(server, "rclone")

    def sync_there_and_back():
        rclone("sync", "--s3-upload-cutoff", "5M", "--s3-chunk-size", "5M", str(local), folder)
        rclone("check", str(local), folder)
        rclone("sync", folder, str(back))
        same_files(local, back)

    def read_a_part():
        same(rclone("cat", "--offset", "1", "--count", "3", folder + "/small"), "ell")

    def copy_and_purge():
        rclone("copyto", folder + "/large", folder + "/copies/large")
        same(rclone("lsf", "-R", "--files-only", folder + "/copies").split(), ["large"])
        rclone("purge", folder)
        same(rclone("lsf", f"lake:{BUCKET}"), "")

    return [("sync there and back, in parts", sync_there_and_back), ("read a part", read_a_part), ("copy and purge", copy_and_purge)]


CLIENTS = {
    "boto3": boto3_steps,
    "pyarrow": pyarrow_steps,
    "s3fs": s3fs_steps,
    "duckdb": duckdb_steps,
    "awscli": awscli_steps,
    "rclone": rclone_steps,
}


def story(client):
    # Keys and addresses are given; none may come from the machine.
    for name in [name for name in os.environ if name.startswith("AWS_") and name not in ("AWS_CLI", "AWS_CA_BUNDLE")]:
        del os.environ[name]
    with Server("sqlite") as server:
        boto(server).create_bucket(Bucket=BUCKET)
        return run(f"s3clients: {client}", CLIENTS[client](server))


wanted = sys.argv[1:] or list(CLIENTS)
unknown = set(wanted) - set(CLIENTS)
if unknown:
    raise SystemExit(f"unknown client: {', '.join(sorted(unknown))} ({', '.join(CLIENTS)})")
close([story(client) for client in wanted])
