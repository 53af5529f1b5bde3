"""Optimistic update of an entity: Anna and Ben sell tickets from one count; no ticket is sold twice.

Each reads the entity with its ETag and writes "if it is still that one" (If-Match). Whoever comes second gets 412, reads
again and repeats. Whoever writes with `*` does not ask: that is for those who know better than everybody else.
"""

from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.data.tables import UpdateMode

from story import connect_to_tables, new_table, refused, tell

SHOW = {"PartitionKey": "shows", "RowKey": "tonight"}


def read(table):
    return table.get_entity(SHOW["PartitionKey"], SHOW["RowKey"])


def sell_if_unchanged(table, show):
    sold = {**show, "tickets": show["tickets"] - 1}
    return table.update_entity(
        sold,
        mode=UpdateMode.REPLACE,
        etag=show.metadata["etag"],
        match_condition=MatchConditions.IfNotModified,
    )


def main():
    with new_table() as name:
        anna = connect_to_tables().get_table_client(name)
        ben = connect_to_tables().get_table_client(name)
        anna.create_entity({**SHOW, "tickets": 10})

        annas, bens = read(anna), read(ben)
        assert annas.metadata["etag"] == bens.metadata["etag"]
        tell("Anna and Ben both see 10 tickets.")

        sell_if_unchanged(anna, annas)
        tell("Anna sells one.")

        with refused(412, "UpdateConditionNotSatisfied"):
            sell_if_unchanged(ben, bens)
        assert read(anna)["tickets"] == 9
        tell("Ben's write is refused (412): the count is no longer the one he read. Nothing was sold twice.")

        while True:
            try:
                sell_if_unchanged(ben, read(ben))
                break
            except ResourceModifiedError:
                continue  # Somebody was quicker again.
        assert read(anna)["tickets"] == 8
        tell("Ben reads again and sells one: 8 are left.")

        # `If-Match: *`, which is what the client sends if nobody gives it an ETag.
        anna.update_entity({**SHOW, "tickets": 0}, mode=UpdateMode.REPLACE)
        assert read(ben)["tickets"] == 0
        tell("The show is cancelled: Anna sets the count to 0 with `*`, whatever it was.")

        with refused(412, "UpdateConditionNotSatisfied"):
            anna.delete_entity(bens, etag=bens.metadata["etag"], match_condition=MatchConditions.IfNotModified)
        anna.delete_entity(SHOW)
        tell("To delete, too, one says what one has seen, or `*`.")


if __name__ == "__main__":
    main()
