"""The Spark application and its JVM: Java, jars, sessions, the py4j bridge and our log stores."""
