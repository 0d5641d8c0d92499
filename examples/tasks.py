"""The tasks, in a module of their own: the application imports it to submit them, the worker to run them."""

import tasklib


@tasklib.task
def send_email(to: str, subject: str = "Hello") -> bool:
    print(f"to {to}: {subject}")
    return True


@tasklib.task(max_retries=3, timeout_seconds=30)
def process_data(file_path: str) -> str:
    return f"processed {file_path}"


@tasklib.task
async def count_words(text: str) -> int:
    return len(text.split())
