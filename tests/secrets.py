"""Secrets as they turn up in URLs and texts. In each of them the word `geheim` must not be seen."""

LONG = "geheim" * 400

SECRET_URLS = (
    "postgresql://ada:geheim@db.example.com/shop",
    "postgresql://ada:ge@geheim@db.example.com/shop",
    "postgresql://ada:x'geheim@db.example.com/shop",
    'postgresql://ada:x"geheim@db.example.com/shop',
    "postgresql://ada:x/geheim?y#z@db.example.com/shop",
    "postgresql://ada:x@y/geheim@db.example.com/shop",
    f"postgresql://ada:{LONG}@db.example.com/shop",
    f"postgresql://{'a' * 300}:geheim@db.example.com/shop",
    "postgresql://db.example.com/shop?user=ada&password=geheim",
    "postgresql://db.example.com/shop?password=x'geheim&sslpassword=geheim",
    f"postgresql://db.example.com/shop?password={LONG}",
    "nats://geheim@nats.example.com:4222",
    "nats://ada:x'geheim@nats.example.com:4222",
    "redis://:geheim@cache.example.com/0",
    "smtp://ada:geheim@mail.example.com",
    "smtp://ada@example.com:geheim@mail.example.com",
    "https://geheim@git.example.com/x.git",
)

SECRET_TEXTS = (
    "host=db user=ada password=geheim",
    "password='x\\'geheim'",
    f"password={LONG}",
    "{'pwd': 'geheim'}",
    '{"api_key": "x y geheim"}',
    "connection_string=geheim",
    "Authorization: Bearer geheim",
)
