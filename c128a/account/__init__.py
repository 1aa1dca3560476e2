"""What index rows cost in a step, and what of the report on PR #50004 holds.

step      torch-free: times between measured points, the account of a step, what the steps of a deployment cost
claims    torch-free: the claims of the report, each with its facts and a verdict that follows from them
evidence  the facts for which the kernel runs
walk      torch-free: the change hunk by hunk, in a small builder that runs as it was before, after and since
"""
