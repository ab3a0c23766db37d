"""Work that outlives its request: the queue, the workers, and how a task is run. They know no operation.

A change is written in one transaction: the server's new task_state, the action that clients can read, and a row in
`tasks`. The row is authoritative; waking a worker only saves it the wait.
"""
