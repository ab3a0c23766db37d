"""The store: tables, engine, migrations, and one query module per noun."""
