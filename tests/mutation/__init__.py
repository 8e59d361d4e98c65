"""Would a test notice? Each condition and comparison of the Lua functions is changed in turn, and the tests are run.

    python -m tests.mutation [--file NAME.lua]… [--changed [BASE]] [--sample N --seed S]

`lua` splits source into tokens, `mutants` says what can be changed, `marks` and `naming` show which tests reach it,
`trial` runs tests against an altered library on a real Redis, `crew` keeps some processes at it, `choosing` puts the
tests in order, `campaign` decides what to try next, `memory` keeps what is known for the next one, `reasons` holds what
no test can notice, and `report` says what came out.
"""
